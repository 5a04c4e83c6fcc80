// The database of a service that does not run: checked, and replaced by a backup.
#include <fmt/format.h>

#include "apps/service.h"
#include "base/file.h"
#include "store/upkeep.h"

namespace slipway {
namespace {

cli::StoreReport report_of(store::Report report) {
  return {std::move(report.service), report.first_turn, report.last_turn,
          std::move(report.lost),    report.jobs,       report.job_last,
          std::move(report.problems)};
}

}  // namespace

Result<cli::StoreReport> check_store(const std::string& file) {
  return store::check_sqlite(file).map(report_of);
}

Result<cli::Restored> restore_store(const std::string& data, const std::string& backup) {
  if (auto made = make_folders(data, 0700); !made) return fail(made.error());
  auto lock = FileLock::take(data + "/service.lock");
  if (!lock)
    return fail(
        ErrorCode::conflict,
        fmt::format("a service runs on {} (process {})", data, FileLock::holder(data + "/service.lock")),
        "stop it first: slipway down");
  return store::restore_sqlite(backup, data + "/slipway.db").map([](store::Restored restored) {
    return cli::Restored{report_of(std::move(restored.report)), std::move(restored.moved_aside),
                         restored.turns_missing};
  });
}

}  // namespace slipway
