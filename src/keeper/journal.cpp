#include "keeper/journal.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <utility>

#include "keeper/bytes.h"
#include "keeper/protocol.h"

namespace slipway::keeper {
namespace {

enum class RecordKind : std::uint8_t { header = 1, intent = 2, end = 3, forget = 4, duty = 5 };
constexpr std::uint32_t format_version = 1;
constexpr std::uint64_t long_size = 1 << 20;
constexpr std::uint64_t long_size_empty = 64 << 10;  // nothing is left in it

std::uint32_t checksum(std::string_view bytes) {  // FNV-1a: against tearing, not against an enemy
  std::uint32_t hash = 2166136261u;
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return hash;
}

// A record: length and checksum of what follows, the kind, the content.
template <class Write>
void append_record(std::string& out, RecordKind kind, const Write& write_content) {
  std::string content(1, static_cast<char>(kind));
  ByteWriter writer(content);
  write_content(writer);
  ByteWriter record(out);
  record.number(static_cast<std::uint32_t>(content.size()));
  record.number(checksum(content));
  out += content;
}

void append_header(std::string& out, const JournalHeader& header) {
  append_record(out, RecordKind::header, [&](ByteWriter& record) {
    record.number(format_version);
    record.text(header.boot);
    record.text(header.keeper);
    record.number(static_cast<std::uint32_t>(header.cgroups.size()));
    for (const std::string& folder : header.cgroups) record.text(folder);
  });
}

void append_intent(std::string& out, const Intent& intent) {
  append_record(out, RecordKind::intent, [&](ByteWriter& record) {
    write(record, intent.key);
    record.number(intent.rank);
    record.number(intent.time.time_since_epoch().count());
  });
}

void append_end(std::string& out, const ProcessEnded& end) {
  append_record(out, RecordKind::end, [&](ByteWriter& record) { write(record, end); });
}

void append_duty(std::string& out, const DutyRecord& duty) {
  append_record(out, RecordKind::duty, [&](ByteWriter& record) { write(record, duty); });
}

std::string format(const JournalContent& content) {
  std::string out;
  append_header(out, content.header);
  for (const DutyRecord& duty : content.duties) append_duty(out, duty);
  for (const Intent& intent : content.open) append_intent(out, intent);
  for (const ProcessEnded& end : content.ended) append_end(out, end);
  return out;
}

// The content of the next whole record, or empty.
std::string_view take_record(std::string_view& bytes) {
  ByteReader head(bytes.substr(0, 8));
  const auto size = head.number<std::uint32_t>();
  const auto sum = head.number<std::uint32_t>();
  if (!head.is_ok() || size == 0 || size > bytes.size() - 8) return {};
  const std::string_view content = bytes.substr(8, size);
  if (checksum(content) != sum) return {};
  bytes.remove_prefix(8 + size);
  return content;
}

class Replay {  // what the records of a journal add up to
 public:
  // False: the record makes no sense, and so nothing after it is trusted.
  bool apply(std::string_view record) {
    ByteReader in(record);
    switch (static_cast<RecordKind>(in.number<std::uint8_t>())) {
      case RecordKind::header: return read_header(in);
      case RecordKind::intent: {
        Intent intent;
        intent.key = read_key(in);
        intent.rank = in.number<std::uint32_t>();
        intent.time = TimePoint(Duration(in.number<Duration::rep>()));
        open_[{intent.key, intent.rank}] = intent;
        return in.is_done();
      }
      case RecordKind::end: {
        ProcessEnded end = read_ended(in);
        if (!in.is_done()) return false;  // before an end that never was takes the place of the intent
        const Name name{end.key, end.rank};
        open_.erase(name);
        ended_[name] = std::move(end);
        return true;
      }
      case RecordKind::forget: {
        const WorkKey key = read_key(in);
        for (auto at = ended_.lower_bound({key, 0}); at != ended_.end() && at->first.first == key;)
          at = ended_.erase(at);
        for (auto at = duties_.lower_bound({key, 0}); at != duties_.end() && at->first.first == key;)
          at = duties_.erase(at);
        return in.is_done();
      }
      case RecordKind::duty: {
        DutyRecord duty = read_duty(in);
        if (!in.is_done()) return false;
        const Name name{duty.key, duty.part};
        duties_[name] = std::move(duty);
        return true;
      }
    }
    return false;
  }

  bool has_header() const { return has_header_; }
  JournalContent content() {
    for (auto& [name, intent] : open_) content_.open.push_back(intent);
    for (auto& [name, end] : ended_) content_.ended.push_back(std::move(end));
    for (auto& [name, duty] : duties_) content_.duties.push_back(std::move(duty));
    return std::move(content_);
  }

 private:
  using Name = std::pair<WorkKey, std::uint32_t>;
  bool read_header(ByteReader& in) {
    if (in.number<std::uint32_t>() != format_version) return false;
    content_.header.boot = in.text();
    content_.header.keeper = in.text();
    content_.header.cgroups.resize(in.count());
    for (std::string& folder : content_.header.cgroups) folder = in.text();
    return has_header_ = in.is_done();
  }
  JournalContent content_;
  bool has_header_ = false;
  std::map<Name, Intent> open_;
  std::map<Name, ProcessEnded> ended_;
  std::map<Name, DutyRecord> duties_;
};

}  // namespace

Result<std::optional<JournalContent>> read_journal(const std::string& path) {
  const Result<std::string> bytes = read_file(path);
  if (!bytes && bytes.error().code == ErrorCode::not_found) return std::nullopt;
  if (!bytes) return fail(bytes.error());
  Replay replay;
  std::string_view rest = *bytes;
  for (std::string_view record = take_record(rest); !record.empty(); record = take_record(rest))
    if (!replay.apply(record)) break;
  if (!replay.has_header()) return std::nullopt;
  return replay.content();
}

Result<Journal> Journal::create(std::string path, const JournalContent& content) {
  const std::string bytes = format(content);
  const std::string beside = path + ".new";
  Fd file(::open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!file) return fail(system_error("cannot create " + beside, errno));
  if (auto written = write_all(file.get(), bytes, beside); !written) return fail(written.error());
  if (::rename(beside.c_str(), path.c_str()) != 0) return fail(system_error("cannot replace " + path, errno));
  return Journal(std::move(path), std::move(file), bytes.size());
}

void Journal::intend(const Intent& intent) { append_intent(buffer_, intent); }
void Journal::end(const ProcessEnded& end) { append_end(buffer_, end); }
void Journal::note(const DutyRecord& record) { append_duty(buffer_, record); }
void Journal::forget(const WorkKey& key) {
  append_record(buffer_, RecordKind::forget, [&](ByteWriter& record) { write(record, key); });
}

Result<void> Journal::flush() {
  if (buffer_.empty()) return {};
  std::size_t done = 0;
  while (done < buffer_.size()) {
    const ssize_t put =
        ::pwrite(file_.get(), buffer_.data() + done, buffer_.size() - done, static_cast<off_t>(size_ + done));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) {
      const int error = put < 0 ? errno : ENOSPC;
      // Half a record would hide whatever is written after it.
      if (::ftruncate(file_.get(), static_cast<off_t>(size_)) != 0)
        return fail(system_error("cannot write and cannot mend " + path_, errno));
      return fail(system_error("cannot write " + path_, error));
    }
    done += static_cast<std::size_t>(put);
  }
  size_ += buffer_.size();
  buffer_.clear();
  return {};
}

bool Journal::is_long(bool anything_left) const {
  // Twice what it was when written anew, so that many ends nobody forgets do not make every turn write them.
  return size_ + buffer_.size() > std::max(size_at_first_ * 2, anything_left ? long_size : long_size_empty);
}

Result<void> Journal::rewrite(const JournalContent& content) {
  Result<Journal> made = create(path_, content);
  if (!made) return fail(made.error());
  *this = std::move(*made);
  return {};
}

}  // namespace slipway::keeper
