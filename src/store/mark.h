#pragma once
// What the data folder itself knows of its database: whose it is, and how far it had come.
//
// One small file beside the database, written over after each turn that was saved. Not synced: a kill loses
// nothing of it, and after a power cut it is older than the database, never newer. So a database that is
// behind its mark has lost turns.
#include <cstdint>
#include <optional>
#include <string>

#include "base/file.h"
#include "base/result.h"

namespace slipway::store {

struct Mark {
  std::string service;                                        // a random id, the same in folder and database
  std::uint64_t turn = 0;                                     // the last one that was saved
  std::uint64_t job_last = 0, node_last = 0, event_last = 0;  // the highest ids that were given
  friend bool operator==(const Mark&, const Mark&) = default;
};

class MarkFile {
 public:
  static std::string path_beside(const std::string& database);

  // nullopt: there is none. Error `conflict` when it cannot be read as one.
  static Result<std::optional<Mark>> read(const std::string& path);
  // Makes it, or takes the one that is there, durably with this content.
  static Result<MarkFile> create(const std::string& path, const Mark& mark);
  // For a database that can only be read now: nothing is written.
  static MarkFile none() { return MarkFile(Fd()); }

  void write(const Mark& mark) const;

 private:
  explicit MarkFile(Fd file) : file_(std::move(file)) {}
  Fd file_;
};

}  // namespace slipway::store
