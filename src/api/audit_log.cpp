#include "api/audit_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

#include "base/log.h"

namespace slipway::api {
namespace {

constexpr std::size_t queue_max = 50'000;
constexpr auto retry_every = 100ms;         // while the file cannot be written
constexpr auto gathers_for = 5ms;           // after each write: so long what comes waits for more
constexpr std::size_t text_kept = 1 << 20;  // of memory, between two writes
constexpr std::size_t line_max = 64 << 10;  // two values of 8 KiB, escaped, and the rest

struct Tail {
  std::string line;       // the last whole one
  std::uint64_t end = 0;  // of it
};

Result<Tail> tail_of(int file, const std::string& name) {
  struct stat status {};
  if (::fstat(file, &status) != 0) return fail(system_error("cannot look at " + name, errno));
  const auto size = static_cast<std::uint64_t>(status.st_size);
  const std::uint64_t begin = size > 2 * line_max ? size - 2 * line_max : 0;
  std::string text(static_cast<std::size_t>(size - begin), '\0');
  if (::pread(file, text.data(), text.size(), static_cast<off_t>(begin)) != static_cast<ssize_t>(text.size()))
    return fail(system_error("cannot read " + name, errno));
  const std::size_t end = text.rfind('\n');
  if (end == std::string::npos) return Tail{};
  const std::size_t before = end == 0 ? std::string::npos : text.rfind('\n', end - 1);
  const std::size_t at = before == std::string::npos ? 0 : before + 1;
  return Tail{text.substr(at, end - at), begin + end + 1};
}

}  // namespace

Result<std::unique_ptr<AuditLog>> AuditLog::open(const std::string& file) {
  Fd fd(::open(file.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!fd) return fail(system_error("cannot open " + file, errno));
  const auto tail = tail_of(fd.get(), file);
  if (!tail) return fail(tail.error());
  wire::AuditChain chain;
  if (!tail->line.empty())
    if (auto resumed = chain.resume(tail->line); !resumed)
      return fail(ErrorCode::conflict,
                  fmt::format("the last line of {} is not as it was written: {}", file, resumed.error().what),
                  "slipway audit verify shows from where; move the file away to begin a new one");
  if (::ftruncate(fd.get(), static_cast<off_t>(tail->end)) != 0)
    return fail(system_error("cannot repair " + file, errno));
  return std::unique_ptr<AuditLog>(new AuditLog(file, std::move(fd), std::move(chain)));
}

AuditLog::AuditLog(std::string name, Fd file, wire::AuditChain chain)
    : name_(std::move(name)), file_(std::move(file)), chain_(std::move(chain)), thread_([this] { run(); }) {}

AuditLog::~AuditLog() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
}

void AuditLog::add(wire::AuditEntry entry) {
  bool is_first = false;  // or the thread knows already that something is there
  {
    const std::lock_guard lock(mutex_);
    is_first = queue_.empty();
    queue_.push_back(std::move(entry));
  }
  if (is_first) changed_.notify_all();
}

std::string AuditLog::problem() const {
  const std::lock_guard lock(mutex_);
  if (!problem_.empty()) return problem_;
  return queue_.size() >= queue_max ? "too much waits to be recorded" : "";
}

void AuditLog::flush() {
  std::unique_lock lock(mutex_);
  ++flushing_;
  changed_.notify_all();
  changed_.wait(lock, [&] { return queue_.empty() && !is_writing_; });
  --flushing_;
}

void AuditLog::run() {
  auto synced = std::chrono::steady_clock::now();
  bool is_synced = true;
  std::unique_lock lock(mutex_);
  for (;;) {
    const auto ready = [&] { return stop_ || !queue_.empty(); };
    if (is_synced)
      changed_.wait(lock, ready);
    else
      changed_.wait_until(lock, synced + 1s, ready);
    if (queue_.empty() && stop_) break;
    std::deque<wire::AuditEntry> entries = std::exchange(queue_, {});
    is_writing_ = true;
    lock.unlock();
    const bool written = entries.empty() || write(entries);
    is_synced &= entries.empty();
    if (const auto now = std::chrono::steady_clock::now(); !is_synced && now >= synced + 1s) {
      ::fdatasync(file_.get());
      synced = now;
      is_synced = true;
    }
    lock.lock();
    if (!written) {
      queue_.insert(queue_.begin(), std::make_move_iterator(entries.begin()),
                    std::make_move_iterator(entries.end()));
      if (stop_) break;
      changed_.wait_for(lock, retry_every, [&] { return stop_; });
    }
    is_writing_ = false;
    changed_.notify_all();
    if (!entries.empty()) changed_.wait_for(lock, gathers_for, [&] { return stop_ || flushing_ > 0; });
  }
  ::fdatasync(file_.get());
}

bool AuditLog::write(std::deque<wire::AuditEntry>& entries) {
  struct stat before {};
  const bool is_known = ::fstat(file_.get(), &before) == 0;
  const wire::AuditChain chain = chain_;
  text_.clear();
  for (wire::AuditEntry& entry : entries) {
    // Also where it is tried again: what was taken out of it is not there any more.
    if (!entry.before.empty()) entry.before = wire::audited(entry.before);
    if (!entry.after.empty()) entry.after = wire::audited(entry.after);
    chain_.append(entry, text_);
  }
  const auto written = write_all(file_.get(), text_, name_);
  if (text_.capacity() > text_kept) text_ = {};
  if (!written) {  // nothing of it, then, until it can be written again
    chain_ = chain;
    if (!is_known || ::ftruncate(file_.get(), before.st_size) != 0)
      log::error("audit.repair", {{"file", name_}});
  }
  const std::lock_guard lock(mutex_);
  if (!written && problem_.empty()) log::error("audit.write", {{"why", written.error().what}});
  problem_ = written ? "" : written.error().what;
  return written.has_value();
}

}  // namespace slipway::api
