// The database of a service on this machine: whether it is whole, and putting a backup in its place.
#include <fmt/format.h>

#include "base/quantity.h"
#include "cli/commands/commands.h"

namespace slipway::cli {
namespace {

std::string turns_of(const StoreReport& report) {
  if (report.last_turn == 0) return "none";
  std::string text;
  std::uint64_t first = report.first_turn;
  for (const auto& [after, before] : report.lost) {
    text += after >= first ? fmt::format("{} to {}, ", first, after) : "";
    first = before;
  }
  return text + fmt::format("{} to {}", first, report.last_turn);
}

Value value_of(const StoreReport& report) {
  std::vector<Value> lost, problems;
  for (const auto& [after, before] : report.lost) lost.push_back(Value{{"after", after}, {"before", before}});
  for (const std::string& problem : report.problems) problems.emplace_back(problem);
  return Value{{"service", report.service},
               {"first_turn", report.first_turn},
               {"last_turn", report.last_turn},
               {"lost", Value::list(std::move(lost))},
               {"jobs", report.jobs},
               {"job_last", report.job_last},
               {"problems", Value::list(std::move(problems))}};
}

std::string text_of(const StoreReport& report) {
  return format_fields({{"service", report.service},
                        {"turns", turns_of(report)},
                        {"jobs", fmt::format("{}, ids up to job_{}", report.jobs, report.job_last)},
                        {"state", report.problems.empty() ? "whole" : report.problems.front()}});
}

std::string database_of(const Context& context, const std::string& file) {
  return file.empty() ? data_folder(context.settings()) + "/slipway.db" : file;
}

Outcome<int> check(Context& context, const std::string& given) {
  const std::string file = database_of(context, given);
  const Result<StoreReport> report = context.programs().store_check(file);
  if (!report) return give_up(report);
  const Outcome<int> printed =
      print(context, value_of(*report), report->service, [&] { return text_of(*report); });
  if (!printed || report->problems.empty()) return printed;
  std::string why = report->problems.front();
  for (std::size_t i = 1; i < report->problems.size() && i < 20; ++i) why += "\n" + report->problems[i];
  return refuse(file + " is damaged", why, "restore a backup: slipway restore FILE");
}

Outcome<int> restore(Context& context, const std::string& backup, bool yes) {
  const std::string data = data_folder(context.settings());
  const Outcome<void> agreed = confirm(
      fmt::format("Put {} in the place of {}/slipway.db? What came after it is lost", backup, data), yes);
  if (!agreed) return give_up(agreed);
  const Result<Restored> restored = context.programs().restore(data, backup);
  if (!restored) return give_up(restored);
  Value value = value_of(restored->report);
  value["moved_aside"] = restored->moved_aside;
  value["turns_missing"] = restored->turns_missing;
  return print(context, value, restored->report.service, [&] {
    std::string text = text_of(restored->report);
    if (restored->turns_missing > 0)
      text += plural(restored->turns_missing, "turn") +
              " of this folder are not in the backup: their jobs are lost\n";
    if (!restored->moved_aside.empty())
      text += "the database of before is now " + restored->moved_aside + "\n";
    return text + "start it with: slipway up\n";
  });
}

}  // namespace

void add_store(CommandTree& tree, Context& context) {
  auto file = std::make_shared<std::string>();
  Command store =
      tree.add("store", "The database and the disk of the service on this machine", "slipway store check");
  store.verb("check", "Look at every page of the database, and which turns it holds", "slipway store check")
      .argument("FILE", *file, "a database or a backup (default: that of the data folder)", Need::optional)
      .runs([&context, file] { return check(context, *file); });
  add_store_usage(store, context);
}

void add_restore(CommandTree& tree, Context& context) {
  auto backup = std::make_shared<std::string>();
  auto yes = std::make_shared<bool>(false);
  tree.add("restore", "Put a backup in the place of the service's database",
           "slipway restore /backups/slipway-20260302T030000Z.db --yes")
      .argument("FILE", *backup, "a backup, as up --backup-dir makes it")
      .flag("-y,--yes", *yes, "do not ask")
      .runs([&context, backup, yes] { return restore(context, *backup, *yes); });
}

}  // namespace slipway::cli
