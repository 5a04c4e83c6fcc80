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

constexpr std::uint64_t runs_kept = 10'000;

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
  {
    Statement ask = db_->prepare("SELECT run FROM runs ORDER BY number DESC LIMIT 1");
    auto row = ask.step();
    if (!row) return fail(row.error());
    if (*row) run_ = ask.text(0);
  }
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

// The number of the turn, and the run that it begins, in the transaction that saves it.
Result<void> SqliteStore::save_turn() {
  if (run_ != own_run_) {
    Statement put = db_->prepare("INSERT OR IGNORE INTO runs (run, first_turn) VALUES (?,?)");
    if (auto saved = put.bind(own_run_).bind(mark_.turn + 1).run(); !saved) return saved;
    Statement prune = db_->prepare("DELETE FROM runs WHERE number <= (SELECT max(number) FROM runs) - ?");
    if (auto done = prune.bind(runs_kept).run(); !done) return done;
  }
  return save_last_id("turn", mark_.turn + 1);
}

Result<control::TurnHistory> SqliteStore::load_turns() {
  control::TurnHistory turns;
  {
    Statement ask = db_->prepare("SELECT turn_key FROM identity");
    auto row = ask.step();
    if (!row) return fail(row.error());
    if (*row) turns.key = ask.text(0);
  }
  Statement ask = db_->prepare("SELECT run, first_turn FROM runs ORDER BY number DESC");
  std::uint64_t last = mark_.turn;
  for (;;) {
    auto row = ask.step();
    if (!row) return fail(row.error());
    if (!*row) break;
    turns.runs.emplace(ask.text(0), last);
    last = static_cast<std::uint64_t>(ask.integer(1)) - 1;
  }
  Statement accepted = db_->prepare("SELECT coalesce(max(before_turn), 0) FROM losses");
  auto row = accepted.step();
  if (!row) return fail(row.error());
  turns.judged_from = std::max(last + 1, static_cast<std::uint64_t>(accepted.integer(0)));
  return turns;
}

void SqliteStore::note_loss(std::uint64_t turn) {
  Mark missed = mark_;
  missed.turn = std::max(missed.turn + 1, turn);
  mark_file_.write(missed);
}

void SqliteStore::note_turn(const control::Changes& changes) {
  ++mark_.turn;
  run_ = own_run_;
  for (const control::NewJob& fresh : changes.jobs_new)
    mark_.job_last = std::max(mark_.job_last, fresh.job.id.value());
  for (const NodeRecord& node : changes.nodes) mark_.node_last = std::max(mark_.node_last, node.id.value());
  if (!changes.events.empty()) mark_.event_last = std::max(mark_.event_last, changes.events.back().id);
  mark_file_.write(mark_);
  if (files_.log.inode == 0) files_.log = look_at_files().log;
}

SqliteStore::Files SqliteStore::look_at_files() const {
  const auto look_at_file = [](const std::string& path) -> File {
    struct stat status {};
    return ::stat(path.c_str(), &status) == 0 ? File{status.st_ino, status.st_size} : File{};
  };
  return {look_at_file(path_), look_at_file(path_ + "-wal")};
}

// What is saved into a file without a name, or beside one, is gone with the service.
Result<void> SqliteStore::look() {
  const Files now = look_at_files();
  for (const auto& [path, known, found] :
       {std::tuple(path_, files_.database, now.database), std::tuple(path_ + "-wal", files_.log, now.log)}) {
    if (known.inode == 0) continue;  // it was not there yet
    if (found.inode != known.inode)
      return fail(
          ErrorCode::unavailable,
          fmt::format("{} was {} while the service runs: what it saved could not be found again", path,
                      found.inode == 0 ? "removed" : "replaced"),
          "put the file itself back; or stop the service with slipway down, and restore a backup: slipway "
          "restore FILE");
    if (found.size < known.size)  // a conflict: nothing brings back what was in it
      return fail(
          ErrorCode::conflict,
          fmt::format("{} was cut from {} bytes to {} while the service runs: what was saved there is "
                      "lost",
                      path, known.size, found.size),
          "slipway down --keep-running; then restore a backup (slipway restore FILE), or go on without "
          "what is lost: slipway up --accept-loss");
  }
  files_ = now;
  return {};
}

}  // namespace slipway::store
