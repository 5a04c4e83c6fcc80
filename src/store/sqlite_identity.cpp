// Opening the database that belongs to its folder, and noticing when it no longer is the file it was.
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>

#include "base/log.h"
#include "base/random.h"
#include "store/identity.h"
#include "store/sqlite_store.h"

namespace slipway::store {
namespace {

std::int64_t micros_now() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

Result<std::string> move_aside(const std::string& database) {
  const std::string to = fmt::format("{}.before-{}", database, micros_now() / 1'000'000);
  bool was_there = false;
  for (const char* part : {"-shm", "-wal", ""}) {
    const std::string from = database + part;
    if (::rename(from.c_str(), (to + part).c_str()) == 0)
      was_there = true;
    else if (errno != ENOENT)
      return fail(system_error("cannot move " + from + " aside", errno));
  }
  return was_there ? to : std::string();
}

Result<std::unique_ptr<control::Store>> open_sqlite(const std::string& path, OpenAs as) {
  const Found found = look_at(path);
  const auto folder = look_at_folder(path, as);
  if (!folder) return fail(folder.error());
  const auto decision = decide(path, found, *folder, as);
  if (!decision) return fail(decision.error());
  if (decision->make_new)
    if (auto moved = move_aside(path); !moved) return fail(moved.error());  // also what is left of its log
  // Where there is no space for what SQLite keeps beside a database, it can still be read.
  const char* vfs = nullptr;
  auto db = Database::open(path);
  if (!db && db.error().code != ErrorCode::conflict) {
    auto other = Database::open(path, Database::index_in_memory);
    if (!other) return fail(db.error());
    db = std::move(other);
    vfs = Database::index_in_memory;
  }
  if (!db) return fail(db.error());
  auto store = std::make_unique<SqliteStore>(std::move(*db), path, vfs);
  const std::optional<Mark> known = found.identity && !decision->make_new ? found.identity : std::nullopt;
  if (auto taken = store->take_identity(known, decision->lost_before); !taken) return fail(taken.error());
  return store;
}

Result<void> SqliteStore::take_identity(const std::optional<Mark>& known,
                                        const std::optional<Mark>& lost_before) {
  mark_ = known.value_or(Mark{});
  if (!known || lost_before)
    if (auto saved = save_identity(lost_before); !saved) return saved;
  auto file = MarkFile::create(MarkFile::path_beside(path_), mark_);
  if (file)
    mark_file_ = std::move(*file);
  else if (known && file.error().code == ErrorCode::unavailable)  // a full disk: it can be read all the same
    log::warning("store.mark", {{"why", file.error().what}});
  else
    return fail(file.error());
  files_ = look_at_files();
  return {};
}

// A new service, or one that continues after a loss.
Result<void> SqliteStore::save_identity(const std::optional<Mark>& lost_before) {
  Transaction transaction(*db_);
  if (auto begun = transaction.begin(); !begun) return begun;
  if (mark_.service.empty()) {
    mark_.service = random_hex(16);
    const std::string turn_key = random_hex(32);
    Statement put = db_->prepare("INSERT INTO identity VALUES (?,?)");
    if (auto saved = put.bind(mark_.service).bind(turn_key).run(); !saved) return saved;
    // Of a database of before there were identities.
    Statement ask = db_->prepare("SELECT kind, id FROM last_ids");
    for (;;) {
      auto row = ask.step();
      if (!row) return fail(row.error());
      if (!*row) break;
      const auto id = static_cast<std::uint64_t>(ask.integer(1));
      if (ask.text(0) == "job") mark_.job_last = id;
      if (ask.text(0) == "node") mark_.node_last = id;
      if (ask.text(0) == "event") mark_.event_last = id;
    }
  }
  if (lost_before) {
    const std::uint64_t before = mark_.turn;
    mark_.turn = std::max(mark_.turn, lost_before->turn) + turns_skipped;
    mark_.job_last = std::max(mark_.job_last, lost_before->job_last);
    mark_.node_last = std::max(mark_.node_last, lost_before->node_last);
    mark_.event_last = std::max(mark_.event_last, lost_before->event_last);
    Statement put = db_->prepare("INSERT INTO losses VALUES (?,?,?)");
    if (auto saved = put.bind(micros_now()).bind(before).bind(mark_.turn).run(); !saved) return saved;
  }
  for (const auto& [kind, id] : {std::pair{"turn", mark_.turn}, std::pair{"job", mark_.job_last},
                                 std::pair{"node", mark_.node_last}, std::pair{"event", mark_.event_last}})
    if (auto saved = save_last_id(kind, id); !saved) return saved;
  return transaction.commit();
}

// The number of the turn, in the transaction that saves it.
Result<void> SqliteStore::save_turn() { return save_last_id("turn", mark_.turn + 1); }

void SqliteStore::note_turn(const control::Changes& changes) {
  ++mark_.turn;
  for (const control::NewJob& fresh : changes.jobs_new)
    mark_.job_last = std::max(mark_.job_last, fresh.job.id.value());
  for (const NodeRecord& node : changes.nodes) mark_.node_last = std::max(mark_.node_last, node.id.value());
  if (!changes.events.empty()) mark_.event_last = std::max(mark_.event_last, changes.events.back().id);
  mark_file_.write(mark_);
  if (files_.log_inode == 0) files_.log_inode = look_at_files().log_inode;
}

SqliteStore::Files SqliteStore::look_at_files() const {
  const auto inode = [](const std::string& path) -> std::uint64_t {
    struct stat status {};
    return ::stat(path.c_str(), &status) == 0 ? status.st_ino : 0;
  };
  return {inode(path_), inode(path_ + "-wal")};
}

// What is saved into a file without a name, or beside one, is gone with the service.
Result<void> SqliteStore::look() {
  const Files now = look_at_files();
  const bool has_log = files_.log_inode != 0;
  if (now.inode == files_.inode && (!has_log || now.log_inode == files_.log_inode)) return {};
  const std::string which = now.inode == files_.inode ? path_ + "-wal" : path_;
  const bool is_gone = (now.inode == files_.inode ? now.log_inode : now.inode) == 0;
  return fail(
      ErrorCode::unavailable,
      fmt::format("{} was {} while the service runs: what it saved could not be found again", which,
                  is_gone ? "removed" : "replaced"),
      "put the file itself back; or stop the service with slipway down, and restore a backup: slipway "
      "restore FILE");
}

}  // namespace slipway::store
