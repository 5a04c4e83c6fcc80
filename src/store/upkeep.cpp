#include "store/upkeep.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "base/file.h"
#include "store/database.h"
#include "store/identity.h"
#include "store/rows.h"
#include "store/sqlite.h"

namespace slipway::store {
namespace {

constexpr int problems_max = 100;

using Handle = std::unique_ptr<sqlite3, int (*)(sqlite3*)>;

Result<Handle> open(const std::string& path, int flags) {
  sqlite3* handle = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &handle, flags | SQLITE_OPEN_NOMUTEX, nullptr);
  Handle owned(handle, sqlite3_close_v2);
  if (code != SQLITE_OK)
    return fail(ErrorCode::unavailable, fmt::format("cannot open {}: {}", path, sqlite3_errmsg(handle)));
  sqlite3_busy_timeout(handle, 10'000);
  return owned;
}

Result<void> sync(const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file || ::fsync(file.get()) != 0) return fail(system_error("cannot sync " + path, errno));
  return {};
}

// Of one moment: all pages in one step hold one snapshot of the log, so a writer does not make it begin anew.
Result<void> copy_pages(const std::string& from, const std::string& to) {
  auto source = open(from, SQLITE_OPEN_READWRITE);
  if (!source) return fail(source.error());
  auto target = open(to, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
  if (!target) return fail(target.error());
  sqlite3_backup* backup = sqlite3_backup_init(target->get(), "main", source->get(), "main");
  const int stepped = backup ? sqlite3_backup_step(backup, -1) : sqlite3_errcode(target->get());
  const int finished = backup ? sqlite3_backup_finish(backup) : stepped;
  if (stepped != SQLITE_DONE || finished != SQLITE_OK)
    return fail(ErrorCode::unavailable,
                fmt::format("cannot copy {} to {}: {}", from, to,
                            sqlite3_errstr(finished != SQLITE_OK ? finished : stepped)));
  // As one file: a copy is opened where nothing may be written beside it.
  if (sqlite3_exec(target->get(), "PRAGMA journal_mode=DELETE", nullptr, nullptr, nullptr) != SQLITE_OK)
    return fail(ErrorCode::unavailable,
                fmt::format("cannot finish {}: {}", to, sqlite3_errmsg(target->get())));
  return {};
}

Result<std::uint64_t> count(Database& db, const char* sql) {
  Statement ask = db.prepare(sql);
  auto row = ask.step();
  if (!row) return fail(row.error());
  return *row ? static_cast<std::uint64_t>(ask.integer(0)) : 0;
}

}  // namespace

Result<Report> check_sqlite(const std::string& database) {
  std::error_code error;
  if (!std::filesystem::exists(database, error))
    return fail(ErrorCode::not_found, "there is no database " + database,
                "name the file, or set SLIPWAY_HOME");
  auto db = Database::open_reader(database);
  if (!db) return fail(db.error().code, fmt::format("{} cannot be used: {}", database, db.error().what));
  Report report;
  {
    Statement check = (*db)->prepare("PRAGMA integrity_check(100)");
    for (int found = 0; found < problems_max; ++found) {
      auto row = check.step();
      if (!row) {
        report.problems.push_back(row.error().what);
        return report;
      }
      if (!*row) break;
      if (check.text(0) != "ok") report.problems.push_back(check.text(0));
    }
  }
  const Found found = look_at(database);
  if (found.identity) {
    report.service = found.identity->service;
    report.last_turn = found.identity->turn;
    report.job_last = found.identity->job_last;
    Statement ask = (*db)->prepare("SELECT after_turn, before_turn FROM losses ORDER BY before_turn");
    auto lost = rows<std::pair<std::uint64_t, std::uint64_t>>(
        ask, [](const Statement& row) { return std::pair(large(row, 0), large(row, 1)); });
    if (lost) report.lost = std::move(*lost);
    for (const auto& [after, before] : report.lost)
      if (after < report.first_turn) report.first_turn = before;  // made anew: it begins behind those
  } else if (found.problem.empty()) {
    report.problems.push_back(
        "it is of no service: it was emptied, is another program's, or is from before there were ids");
  }
  auto jobs = count(**db, "SELECT count(*) FROM jobs");
  if (jobs)
    report.jobs = *jobs;
  else
    report.problems.push_back(jobs.error().what);
  return report;
}

Result<void> back_up_sqlite(const std::string& database, const std::string& to) {
  const std::string partial = to + ".partial";
  ::unlink(partial.c_str());
  auto copied = copy_pages(database, partial);
  if (copied) copied = sync(partial);
  if (copied) {
    auto report = check_sqlite(partial);
    if (!report)
      copied = fail(report.error());
    else if (!report->problems.empty())
      copied = fail(ErrorCode::conflict, fmt::format("{} is damaged: {}", database, report->problems.front()),
                    "slipway store check says more; older backups are kept");
  }
  if (copied && ::chmod(partial.c_str(), 0600) != 0)
    copied = fail(system_error("cannot set the mode of " + partial, errno));
  if (copied && ::rename(partial.c_str(), to.c_str()) != 0)
    copied = fail(system_error("cannot name the backup " + to, errno));
  for (const char* part : {"", "-journal", "-wal", "-shm"}) ::unlink((partial + part).c_str());
  if (!copied) return copied;
  return sync(std::filesystem::path(to).parent_path().string());
}

Result<Restored> restore_sqlite(const std::string& backup, const std::string& database) {
  auto report = check_sqlite(backup);
  if (!report) return fail(report.error());
  if (!report->problems.empty())
    return fail(ErrorCode::conflict, fmt::format("{} is damaged: {}", backup, report->problems.front()),
                "take another backup; nothing was changed");
  const auto folder = look_at_folder(database, OpenAs::with_loss);
  if (!folder) return fail(folder.error());
  Restored restored{std::move(*report), {}, 0};
  if (folder->mark && folder->mark->service == restored.report.service)
    restored.turns_missing = folder->mark->turn - std::min(folder->mark->turn, restored.report.last_turn);
  const std::string fresh = database + ".restored";
  ::unlink(fresh.c_str());
  if (auto copied = copy_pages(backup, fresh); !copied) return fail(copied.error());
  if (auto synced = sync(fresh); !synced) return fail(synced.error());
  auto aside = move_aside(database);
  if (!aside) return fail(aside.error());
  restored.moved_aside = *aside;
  if (::rename(fresh.c_str(), database.c_str()) != 0)
    return fail(system_error("cannot put the backup in place as " + database, errno));
  for (const char* part : {"-journal", "-wal", "-shm"}) ::unlink((fresh + part).c_str());
  auto opened = open_sqlite(database, OpenAs::with_loss);
  if (!opened) return fail(opened.error());
  return restored;
}

}  // namespace slipway::store
