#include "store/identity.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "store/database.h"

namespace slipway::store {
namespace {

namespace fs = std::filesystem;

// ── the database ──

Result<bool> has_table(Database& db, const char* name) {
  Statement ask = db.prepare("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?");
  return ask.bind(std::string_view(name)).step();
}

Result<void> read_identity(Database& db, Found& found) {
  auto table = has_table(db, "identity");
  if (!table) return fail(table.error());
  found.has_identity_table = *table;
  if (!*table) return {};
  Mark mark;
  {
    Statement ask = db.prepare("SELECT service FROM identity");
    auto row = ask.step();
    if (!row) return fail(row.error());
    if (!*row) return {};
    mark.service = ask.text(0);
  }
  Statement ask = db.prepare("SELECT kind, id FROM last_ids");
  for (;;) {
    auto row = ask.step();
    if (!row) return fail(row.error());
    if (!*row) break;
    const auto id = static_cast<std::uint64_t>(ask.integer(1));
    const std::string kind = ask.text(0);
    if (kind == "turn") mark.turn = id;
    if (kind == "job") mark.job_last = id;
    if (kind == "node") mark.node_last = id;
    if (kind == "event") mark.event_last = id;
  }
  found.identity = mark;
  return {};
}

// ── the folder ──

std::uint64_t highest_job(const fs::path& data) {
  std::uint64_t highest = 0;
  std::error_code error;
  for (const auto& workspace : fs::directory_iterator(data / "workspaces", error)) {
    std::error_code ignored;  // what cannot be read counts as missing
    for (const auto& job : fs::directory_iterator(workspace.path() / "jobs", ignored)) {
      const std::string name = job.path().filename().string();
      std::uint64_t number = 0;
      if (name.starts_with("job_") &&
          std::from_chars(name.data() + 4, name.data() + name.size(), number).ec == std::errc{})
        highest = std::max(highest, number);
    }
  }
  return highest;
}

// ── refusals ──

constexpr std::string_view all_ways_out =
    "put the right database back; or restore a backup: slipway restore FILE; or continue without what is "
    "lost: "
    "slipway up --accept-loss";
constexpr std::string_view ways_out_of_nothing =
    "put it back; or restore a backup: slipway restore FILE; or begin anew beside the old files: slipway up "
    "--new";

std::string known_of(const FolderKnows& folder) {
  if (folder.mark)
    return fmt::format(
        "the folder belongs to service {}, which had saved {} turns and given ids up to job_{}",
        folder.mark->service.substr(0, 8), folder.mark->turn, folder.mark->job_last);
  if (folder.mark_is_damaged) return "the folder's service.mark is damaged";
  return fmt::format("the folder has files of jobs up to job_{}", folder.job_last);
}

tl::unexpected<Error> refuse(std::string what, const FolderKnows& folder, std::string_view hint) {
  return fail(ErrorCode::conflict, what + "\n" + known_of(folder), std::string(hint));
}

Mark floor_of(const Found& found, const FolderKnows& folder) {
  Mark floor = folder.mark.value_or(Mark{});
  floor.job_last = std::max(floor.job_last, folder.job_last);
  if (found.identity) {
    floor.turn = std::max(floor.turn, found.identity->turn);
    floor.job_last = std::max(floor.job_last, found.identity->job_last);
    floor.node_last = std::max(floor.node_last, found.identity->node_last);
    floor.event_last = std::max(floor.event_last, found.identity->event_last);
  }
  const bool all_is_known =
      folder.mark && (!found.identity || found.identity->service == folder.mark->service);
  if (!all_is_known) {
    floor.job_last += ids_skipped;
    floor.node_last += ids_skipped;
    floor.event_last += events_skipped;
  }
  return floor;
}

bool is_behind(const Mark& database, const Mark& folder) {
  return database.turn < folder.turn || database.job_last < folder.job_last ||
         database.node_last < folder.node_last || database.event_last < folder.event_last;
}

}  // namespace

Found look_at(const std::string& database) {
  Found found;
  struct stat status {};
  found.is_there = ::stat(database.c_str(), &status) == 0 && status.st_size > 0;
  if (!found.is_there) return found;
  for (const char* vfs : {static_cast<const char*>(nullptr), Database::index_in_memory}) {
    auto db = Database::open_reader(database, vfs);
    auto read = db ? read_identity(**db, found) : Result<void>(fail(db.error()));
    found.problem = read ? "" : read.error().what;
    if (read || read.error().code == ErrorCode::conflict) return found;
  }
  return found;
}

Result<FolderKnows> look_at_folder(const std::string& database, OpenAs as) {
  FolderKnows folder;
  auto mark = MarkFile::read(MarkFile::path_beside(database));
  if (!mark && mark.error().code != ErrorCode::conflict) return fail(mark.error());
  folder.mark_is_damaged = !mark;
  if (mark) folder.mark = *mark;
  if (!folder.mark || as != OpenAs::usual) folder.job_last = highest_job(fs::path(database).parent_path());
  return folder;
}

Result<Decision> decide(const std::string& database, const Found& found, const FolderKnows& folder,
                        OpenAs as) {
  const bool folder_is_used = folder.mark || folder.mark_is_damaged || folder.job_last > 0;
  if (!found.is_there) {
    if (!folder_is_used) return Decision{.make_new = true, .lost_before = std::nullopt};
    if (as == OpenAs::made_anew) return Decision{.make_new = true, .lost_before = floor_of(found, folder)};
    std::error_code ignored;
    return refuse(fmt::format("{} {}", database, fs::exists(database, ignored) ? "is empty" : "is missing"),
                  folder, ways_out_of_nothing);
  }
  if (as == OpenAs::made_anew) {
    if (found.problem.empty() && found.identity && folder.mark &&
        found.identity->service == folder.mark->service && !is_behind(*found.identity, *folder.mark))
      return fail(
          ErrorCode::conflict, fmt::format("{} is there and whole", database),
          "leave out --new; another service wants another folder: slipway up with another SLIPWAY_HOME");
    return Decision{.make_new = true, .lost_before = floor_of(found, folder)};
  }
  if (!found.problem.empty()) return Decision{};  // opening it says what is wrong
  const bool accepts = as == OpenAs::with_loss;
  const Decision resume{.make_new = false,
                        .lost_before = accepts ? std::optional(floor_of(found, folder)) : std::nullopt};
  if (accepts) return resume;
  if (folder.mark_is_damaged)
    return refuse(fmt::format("{} cannot be checked", database), folder, all_ways_out);
  if (!found.identity) {
    // One of before there were identities becomes the folder's; an emptied one does not.
    if (!folder.mark) return resume;
    return refuse(fmt::format("{} is of no service: it was emptied or is another program's", database),
                  folder, all_ways_out);
  }
  if (folder.mark && found.identity->service != folder.mark->service)
    return refuse(fmt::format("{} is of another service, {}, with {} turns", database,
                              found.identity->service.substr(0, 8), found.identity->turn),
                  folder, all_ways_out);
  if (folder.mark && is_behind(*found.identity, *folder.mark))
    return refuse(
        fmt::format("{} is older than its folder: it ends with turn {} and job_{}, {} turns are missing",
                    database, found.identity->turn, found.identity->job_last,
                    folder.mark->turn - std::min(folder.mark->turn, found.identity->turn)),
        folder, all_ways_out);
  if (!folder.mark && found.identity->job_last < folder.job_last)
    return refuse(
        fmt::format("{} is older than its folder: it ends with job_{}", database, found.identity->job_last),
        folder, all_ways_out);
  return resume;
}

}  // namespace slipway::store
