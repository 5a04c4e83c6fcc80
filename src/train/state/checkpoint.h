#pragma once
// Checkpoints and stored models: one file, versioned, checksummed, and laid out to be mapped.
//
//   bytes 0..8    "SLPWTRN1"
//   8..12         length of the header text, 12..16 its CRC-32C (both little-endian)
//   16..          header: lines `key value`; then zeros up to a multiple of 64
//   sections      arrays of little-endian floats, each at a multiple of 64: `section NAME OFFSET FLOATS
//   CRC32C`
//
// Values are plain (no padding, any machine can read them). A file appears under its name only when it is
// whole and on disk; a file that fails its checks is refused with the reason, never half used.
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace slipway::train {

struct CheckpointInfo {
  std::string model;  // format_model
  std::string dataset;
  int classes = 10;
  std::uint64_t step = 0;  // steps done
  std::uint64_t seed = 0;
  std::uint32_t workers = 1;
  std::uint32_t batch = 0;
  std::string optimizer;                // sgd, momentum …; empty in a stored model
  std::uint32_t shard = 0, shards = 1;  // a parameter server keeps only its own part
  double accuracy = -1;                 // on the test set when it was last measured
  friend bool operator==(const CheckpointInfo&, const CheckpointInfo&) = default;
};

// A part of the file to be: pointers stay valid until the write has returned.
struct Checkpoint {
  CheckpointInfo info;
  std::vector<float> values;  // the parameters
  std::vector<float> state;   // the optimizer's
};

// Checks everything; `name` is for the message.
Result<Checkpoint> parse_checkpoint(std::span<const std::uint8_t> bytes, const std::string& name);
Result<Checkpoint> read_checkpoint(const std::string& path);

// Written beside, synced, renamed, folder synced. `recycle` names an old checkpoint whose pages may be
// overwritten instead of allocating new ones; it is gone afterwards.
Result<void> write_checkpoint(const std::string& path, const CheckpointInfo& info,
                              std::span<const float> values, std::span<const float> state,
                              const std::string& recycle = "");

// A folder of checkpoints step-000000001234.ckpt.
class CheckpointFolder {
 public:
  CheckpointFolder(std::string path, int keep) : path_(std::move(path)), keep_(keep) {}

  // Keeps the newest `keep` files, the new one among them.
  Result<void> save(const CheckpointInfo& info, std::span<const float> values, std::span<const float> state);
  // Steps of the files there, oldest first; whether they are sound is seen when they are read.
  std::vector<std::uint64_t> steps() const;
  Result<Checkpoint> load(std::uint64_t step) const;
  // The newest sound one, or nothing when there is none. What had to be skipped is listed in `passed_over`.
  std::optional<Checkpoint> load_newest(std::vector<Error>& passed_over) const;
  const std::string& path() const { return path_; }

 private:
  std::string file(std::uint64_t step) const;
  std::string path_;
  int keep_;
};

}  // namespace slipway::train
