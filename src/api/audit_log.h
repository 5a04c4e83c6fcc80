#pragma once
// What was asked for, by whom, and whether it was allowed: a file that is only added to, one JSON line for
// each request that changes something or was denied (wire/audit.h).
//
// Written on a thread of its own; a line is in the file a moment after its answer, and on the disk within a
// second. What comes within milliseconds is one write: waking the thread costs more than a line. Requests
// that change something are refused while it cannot be written.
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "base/file.h"
#include "wire/audit.h"

namespace slipway::api {

class AuditLog {
 public:
  // Continues after the last line of the file. A part of a line, from a crash, is cut off. Error `conflict`
  // where the last line is not as it was written.
  static Result<std::unique_ptr<AuditLog>> open(const std::string& file);
  ~AuditLog();  // after all is written

  // Thread-safe. `before` and `after` may be any JSON: their secrets are taken out here.
  void add(wire::AuditEntry entry);
  // Why nothing more can be taken, or empty.
  std::string problem() const;
  void flush();  // returns when all that was added is in the file

 private:
  AuditLog(std::string name, Fd file, wire::AuditChain chain);
  void run();
  bool write(std::deque<wire::AuditEntry>& entries);

  const std::string name_;
  const Fd file_;
  wire::AuditChain chain_;  // of the thread
  std::string text_;        // likewise: its memory is used again
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<wire::AuditEntry> queue_;  // guarded by mutex_
  std::string problem_;                 // guarded by mutex_
  bool is_writing_ = false;             // guarded by mutex_
  int flushing_ = 0;                    // guarded by mutex_: so many wait in flush()
  bool stop_ = false;                   // guarded by mutex_
  std::jthread thread_;                 // last, so that it ends before what it uses
};

}  // namespace slipway::api
