#pragma once
// The points of a run that is logged to: blocks in its file, and of each metric a tail in memory, which the
// journal has. A tail that is full becomes a block at the end of the file; the file is synced with the next
// checkpoint, and until then the journal still has what is in it.
//
// Not safe for several threads: its owner holds a lock. A Series is a copy that can be read without one: what
// a file has does not change where it was written.
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "track/block.h"
#include "track/keys.h"

namespace slipway::track {

struct BlockPlace {
  std::uint64_t offset = 0;
  std::uint32_t size = 0;
};

// One metric of one run, to be read.
struct Series {
  std::string path;
  std::string key;
  std::uint64_t file_size = 0;  // what of the file counts
  bool knows_blocks = false;    // else they are looked for in the file
  std::vector<BlockPlace> blocks;
  std::vector<Point> tail;
};

// All points by step, timestamp, value. Error `internal` for a file that is damaged.
Result<std::vector<Point>> read_series(const Series& series);
// At most `limit` of them with all peaks; of long series only the summaries of blocks are read.
Result<std::vector<Point>> read_view(const Series& series, std::size_t limit);

// The file of a run's points, and the folder that names it.
Result<void> sync_points_file(const std::string& path);

class RunPoints {
 public:
  // `file_size`: what of the file counts; what is behind it is written over.
  RunPoints(std::string path, std::uint64_t file_size);

  // Whether the run has this very point. Reads the file where summaries do not tell.
  Result<bool> has(KeyId key, const std::string& name, const Point& point);
  void add(KeyId key, const std::string& name, const Point& point);

  // The tails as blocks, for the next checkpoint.
  std::string format_tails(const Keys& keys) const;
  void load_tails(std::string_view blocks, Keys& keys);
  // The tails become blocks of the file, however few points they have.
  Result<void> flush(const Keys& keys);

  Series series(KeyId key, const std::string& name) const;
  std::uint64_t file_size() const { return file_size_; }
  std::uint64_t generation() const { return generation_; }  // changes with every point

 private:
  struct Placed {
    BlockPlace place;
    std::int64_t step_min = 0, step_max = 0;
    Millis time_min = 0, time_max = 0;
  };
  struct Tracked {
    std::vector<Placed> blocks;
    std::vector<Point> tail;
    bool is_sorted = true;  // the tail
    bool has_last = false;
    Point last;                      // the latest by step and timestamp
    std::size_t decoded = SIZE_MAX;  // the block that was looked into
    std::vector<Point> decoded_points;
  };
  static Placed placed_at(std::uint64_t offset, const BlockSummary& summary);
  Result<void> load_blocks();
  Result<void> seal(Tracked& tracked, const std::string& name);
  Tracked& tracked(KeyId key, const std::string& name);

  std::string path_;
  std::uint64_t file_size_;
  bool is_loaded_ = false;  // the blocks of the file
  std::uint64_t generation_ = 0;
  std::unordered_map<KeyId, Tracked> tracked_;
  std::unordered_map<std::string, std::vector<Placed>> unclaimed_;  // blocks of metrics not asked for yet
};

}  // namespace slipway::track
