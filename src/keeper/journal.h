#pragma once
// What a keeper must not forget when it is killed: which processes it was about to start, how they ended, and
// what agents have to do for them.
//
// Written without fsync: what cuts the power ends the processes too, which the boot id in the header shows.
// Records are appended, each with a checksum; a torn last one is as if it had not been written. What the
// agent asked to forget is dropped when the file is next written anew.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "domain/protocol.h"
#include "keeper/protocol.h"

namespace slipway::keeper {

struct JournalHeader {
  std::string boot;                  // of the machine, when it was written
  std::string keeper;                // identity of the keeper
  std::vector<std::string> cgroups;  // folders it made
  friend bool operator==(const JournalHeader&, const JournalHeader&) = default;
};

struct Intent {
  WorkKey key;
  std::uint32_t rank = 0;
  TimePoint time{};
  friend bool operator==(const Intent&, const Intent&) = default;
};

struct JournalContent {
  JournalHeader header;
  std::vector<Intent> open;         // may have been started, and have not ended
  std::vector<ProcessEnded> ended;  // and are not forgotten
  std::vector<DutyRecord> duties;   // likewise
};

// nullopt when there is none, or when not even its header can be read.
Result<std::optional<JournalContent>> read_journal(const std::string& path);

class Journal {
 public:
  // Replaces the file, whole or not at all.
  static Result<Journal> create(std::string path, const JournalContent& content);

  // Buffered until flush().
  void intend(const Intent& intent);
  void end(const ProcessEnded& end);
  void note(const DutyRecord& record);  // replaces one of the same part
  void forget(const WorkKey& key);

  // One write. After an error nothing of the buffer is in the file, all of it is kept, and the next flush
  // tries again.
  Result<void> flush();

  // So long that writing it anew is worth it.
  bool is_long(bool anything_left) const;
  Result<void> rewrite(const JournalContent& content);

 private:
  Journal(std::string path, Fd file, std::uint64_t size)
      : path_(std::move(path)), file_(std::move(file)), size_(size), size_at_first_(size) {}
  std::string path_;
  Fd file_;
  std::uint64_t size_ = 0;  // of whole records in the file
  std::uint64_t size_at_first_ = 0;
  std::string buffer_;
};

}  // namespace slipway::keeper
