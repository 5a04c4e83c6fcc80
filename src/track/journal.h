#pragma once
// The journal of what was changed since the last checkpoint: numbered records in files, each with a checksum.
// A thread of its own writes all that wait in one write and syncs once for them; only then are they durable.
//
//   file <number of its first record>.log · record: size u32 · CRC-32C u32 · bytes
//
// Where the last file ends in half a record, or in anything else, it ends before that. When a write fails
// nothing behind it counts: those who wait are told, and everything is refused until it is opened again.
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/file.h"
#include "base/result.h"

namespace slipway::track {

class Journal {
 public:
  using Done = std::function<void(Result<void>)>;  // on the journal's thread
  using Replay = std::function<Result<void>(std::uint64_t number, std::string_view record)>;

  explicit Journal(std::string folder);
  ~Journal();  // what waits is written

  // Hands over the records behind `after`, in order; then records are taken, from the next number on. Error
  // `internal` where records are missing or damaged that are not the last ones.
  Result<void> open(std::uint64_t after, const Replay& replay);

  // Whether records are taken: else the journal failed, or more waits than it may. Asked before the state is
  // changed.
  Result<void> ready() const;
  // Its number.
  std::uint64_t append(std::string record, Done done);
  // Done when all that was appended before is durable.
  void after_synced(Done done);
  // What comes next goes to a file of its own. The number of the last record before that.
  std::uint64_t rotate();
  // Files with no record behind `number` are removed; not while records are appended.
  void remove_through(std::uint64_t number);

  bool has_failed() const;  // until it is opened again
  // Whether the folder can be written again.
  Result<void> probe() const;
  std::uint64_t bytes() const;  // in files, not counting what was removed

  static constexpr std::size_t waiting_bytes_max = 64u << 20;

 private:
  struct Item {
    std::string record;
    Done done;
    bool begins_file = false;
    bool is_marker = false;  // nothing to write
    std::uint64_t number = 0;
  };
  void run(const std::stop_token& stop);
  void stop_thread();
  Result<void> write(std::vector<Item>& items);
  Result<void> begin_file(std::uint64_t first);
  std::string path_of(std::uint64_t first) const;
  Result<std::vector<std::uint64_t>> files() const;

  const std::string folder_;
  mutable std::mutex mutex_;
  std::condition_variable_any wake_;
  std::deque<Item> waiting_;       // guarded by mutex_
  std::size_t waiting_bytes_ = 0;  // guarded by mutex_
  std::uint64_t next_ = 1;         // guarded by mutex_; number of the next record
  std::uint64_t bytes_ = 0;        // guarded by mutex_
  bool failed_ = false;            // guarded by mutex_
  bool is_busy_ = false;           // guarded by mutex_; the thread has some that are not durable yet
  bool begins_file_ = true;        // guarded by mutex_; the next record does
  Fd file_;                        // of the thread
  std::uint64_t file_size_ = 0;    // of the thread; what of it is durable
  std::string path_;               // of the thread
  std::jthread thread_;
};

}  // namespace slipway::track
