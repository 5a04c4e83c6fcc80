#include "track/journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>

#include "base/crc32c.h"
#include "base/log.h"
#include "track/bytes.h"

namespace slipway::track {
namespace {

constexpr std::size_t record_frame = 8;
constexpr std::size_t record_size_max = 64u << 20;
constexpr const char* file_suffix = ".log";

// What `bytes` begin with. nullopt: no whole record.
std::optional<std::string_view> read_record(std::string_view bytes) {
  ByteReader in(bytes);
  const std::uint32_t size = in.fixed32();
  const std::uint32_t sum = in.fixed32();
  if (in.failed() || size == 0 || size > record_size_max) return std::nullopt;
  const std::string_view record = in.bytes(size);
  if (in.failed() || crc32c(record.data(), record.size()) != sum) return std::nullopt;
  return record;
}

Error cannot_write(const Error& why) {
  return {ErrorCode::unavailable, "nothing can be tracked now: " + why.what,
          "free some space where the data folder lies; what was acknowledged is kept"};
}

Error journal_failed() {
  return {ErrorCode::unavailable, "nothing can be tracked now: the journal could not be written",
          "try again"};
}

Result<void> sync_folder(const std::string& folder) {
  const Fd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || ::fsync(fd.get()) != 0) return fail(system_error("cannot sync " + folder, errno));
  return {};
}

}  // namespace

Journal::Journal(std::string folder) : folder_(std::move(folder)) {}

Journal::~Journal() { stop_thread(); }

void Journal::stop_thread() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  wake_.notify_all();
  thread_.join();
}

std::string Journal::path_of(std::uint64_t first) const {
  return fmt::format("{}/{:020}{}", folder_, first, file_suffix);
}

Result<std::vector<std::uint64_t>> Journal::files() const {
  std::vector<std::uint64_t> all;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder_, error)) {
    const std::string name = entry.path().filename().string();
    std::uint64_t first = 0;
    const auto [end, wrong] = std::from_chars(name.data(), name.data() + name.size(), first);
    if (wrong == std::errc{} && std::string_view(end) == file_suffix) all.push_back(first);
  }
  if (error) return fail(system_error("cannot list " + folder_, error.value()));
  std::sort(all.begin(), all.end());
  return all;
}

Result<void> Journal::open(std::uint64_t after, const Replay& replay) {
  stop_thread();
  if (auto made = make_folders(folder_, 0700); !made) return made;
  auto all = files();
  if (!all) return fail(all.error());
  std::uint64_t next = after + 1, total = 0;
  for (std::size_t i = 0; i < all->size(); ++i) {
    const std::uint64_t first = (*all)[i];
    const std::string path = path_of(first);
    auto bytes = read_file(path);
    if (!bytes) return fail(bytes.error());
    if (first > next)
      return fail(ErrorCode::internal,
                  fmt::format("{} begins with record {}: those from {} on are missing", path, first, next),
                  "restore the data folder from a backup");
    std::uint64_t number = first;
    std::size_t offset = 0;
    while (const auto record = read_record(std::string_view(*bytes).substr(offset))) {
      if (number >= next) {
        if (auto applied = replay(number, *record); !applied) return applied;
        next = number + 1;
      }
      offset += record_frame + record->size();
      ++number;
    }
    total += offset;
    if (offset == bytes->size()) continue;
    const bool misses_nothing = i + 1 == all->size() || (*all)[i + 1] <= next;
    // A file that another one follows may end in what was being written when a write failed: none of that was
    // acknowledged, and the numbers go on in the next file.
    if (!misses_nothing)
      return fail(ErrorCode::internal, fmt::format("{} is damaged at byte {}", path, offset),
                  "restore the data folder from a backup");
    log::warning("track.journal_cut", {{"file", path}, {"at", offset}, {"bytes", bytes->size() - offset}});
    if (::truncate(path.c_str(), static_cast<off_t>(offset)) != 0)
      return fail(system_error("cannot cut " + path, errno));
  }
  const std::scoped_lock lock(mutex_);
  next_ = next;
  bytes_ = total;
  failed_ = false;
  begins_file_ = true;
  waiting_.clear();
  waiting_bytes_ = 0;
  file_ = Fd();
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  return {};
}

Result<void> Journal::ready() const {
  const std::scoped_lock lock(mutex_);
  if (failed_) return fail(journal_failed());
  if (waiting_bytes_ <= waiting_bytes_max) return {};
  return fail(ErrorCode::unavailable, "more is logged than the disk takes: too much waits to be written",
              "try again");
}

std::uint64_t Journal::append(std::string record, Done done) {
  std::unique_lock lock(mutex_);
  if (failed_) {
    lock.unlock();
    done(fail(journal_failed()));
    return 0;
  }
  waiting_bytes_ += record.size();
  const std::uint64_t number = next_++;
  waiting_.push_back({std::move(record), std::move(done), std::exchange(begins_file_, false), false, number});
  lock.unlock();
  wake_.notify_one();
  return number;
}

void Journal::after_synced(Done done) {
  std::unique_lock lock(mutex_);
  if (failed_) {
    lock.unlock();
    return done(fail(journal_failed()));
  }
  if (waiting_.empty() && !is_busy_) {
    lock.unlock();
    return done({});
  }
  waiting_.push_back({{}, std::move(done), false, true, 0});
  lock.unlock();
  wake_.notify_one();
}

std::uint64_t Journal::rotate() {
  const std::scoped_lock lock(mutex_);
  begins_file_ = true;
  return next_ - 1;
}

void Journal::remove_through(std::uint64_t number) {
  auto all = files();
  if (!all) return log::warning("track.journal", {{"why", all.error().what}});
  std::uint64_t removed = 0;
  // The last file goes, too, where nothing was appended since: the next record begins another one.
  const bool is_last_done = [&] {
    const std::scoped_lock lock(mutex_);
    return begins_file_ && next_ == number + 1;
  }();
  for (std::size_t i = 0; i < all->size(); ++i) {
    const bool is_last = i + 1 == all->size();
    // Its records end before those of the next file.
    if (is_last ? !is_last_done : (*all)[i + 1] > number + 1) break;
    std::error_code error;
    const auto size = std::filesystem::file_size(path_of((*all)[i]), error);
    if (::unlink(path_of((*all)[i]).c_str()) == 0 && !error) removed += size;
  }
  const std::scoped_lock lock(mutex_);
  bytes_ -= std::min(bytes_, removed);
}

bool Journal::has_failed() const {
  const std::scoped_lock lock(mutex_);
  return failed_;
}

std::uint64_t Journal::bytes() const {
  const std::scoped_lock lock(mutex_);
  return bytes_;
}

Result<void> Journal::probe() const {
  const std::string path = folder_ + "/probe";
  auto written = write_file_durably(path, std::string(64 << 10, '\0'), 0600);
  ::unlink(path.c_str());
  if (!written) return fail(cannot_write(written.error()));
  return {};
}

Result<void> Journal::begin_file(std::uint64_t first) {
  path_ = path_of(first);
  // One that is there has no record that counts: of an earlier try to begin it.
  file_ = Fd(::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!file_) return fail(system_error("cannot open " + path_, errno));
  file_size_ = 0;
  return sync_folder(folder_);
}

Result<void> Journal::write(std::vector<Item>& items) {
  std::string bytes;
  const auto flush = [&]() -> Result<void> {
    if (bytes.empty()) return {};
    if (auto written = write_all(file_.get(), bytes, path_); !written) return written;
    if (::fdatasync(file_.get()) != 0) return fail(system_error("cannot sync " + path_, errno));
    file_size_ += bytes.size();
    const std::scoped_lock lock(mutex_);
    bytes_ += bytes.size();
    bytes.clear();
    return {};
  };
  for (Item& item : items) {
    if (item.is_marker) continue;
    if (item.begins_file) {
      if (auto flushed = flush(); !flushed) return flushed;
      if (auto begun = begin_file(item.number); !begun) return begun;
    }
    const auto size = static_cast<std::uint32_t>(item.record.size());
    const std::uint32_t sum = crc32c(item.record.data(), item.record.size());
    bytes.append(reinterpret_cast<const char*>(&size), 4);
    bytes.append(reinterpret_cast<const char*>(&sum), 4);
    bytes += item.record;
  }
  return flush();
}

void Journal::run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, stop, [&] { return !waiting_.empty(); });
    if (waiting_.empty()) return;  // stopped, and nothing is left
    std::vector<Item> items(std::make_move_iterator(waiting_.begin()),
                            std::make_move_iterator(waiting_.end()));
    waiting_.clear();
    waiting_bytes_ = 0;
    is_busy_ = true;
    const bool was_failed = failed_;
    lock.unlock();
    Result<void> written = was_failed ? Result<void>(fail(journal_failed())) : write(items);
    if (!written && !was_failed) {
      log::error("track.journal", {{"why", written.error().what}});
      // What was written and not synced must not come back at the next start.
      if (file_ && ::ftruncate(file_.get(), static_cast<off_t>(file_size_)) != 0)
        log::error("track.journal_cut",
                   {{"file", path_}, {"why", system_error("cannot cut it", errno).what}});
      written = fail(cannot_write(written.error()));
      lock.lock();
      failed_ = true;
      lock.unlock();
    }
    for (Item& item : items)
      if (item.done) item.done(written);
    lock.lock();
    is_busy_ = false;
  }
}

}  // namespace slipway::track
