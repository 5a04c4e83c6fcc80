#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/quantity.h"
#include "cli/commands/commands.h"
#include "domain/quota.h"
#include "net/http.h"
#include "wire/records.h"

namespace slipway::cli {
namespace {

struct QuotaOptions {
  std::string user, workspace;
  std::array<std::string, quota_kinds> limits;  // a number, or none
};

std::string with_workspace(std::string target, const std::string& workspace) {
  if (!workspace.empty()) target += "?workspace=" + net::percent_encode(workspace);
  return target;
}

std::string whose(const Value& quota) {
  if (quota.text_at("scope") == "workspace") return "workspace " + quota.text_at("workspace");
  return quota.text_at("user") == every_user ? "each user" : quota.text_at("user");
}

// "3 of 10"; without a limit what is used.
std::string cell(const Value& quota, QuotaKind kind) {
  std::string used = quota.at("used").text_at(to_string(kind));
  std::string limit = quota.at("limits").text_at(to_string(kind));
  if (kind == QuotaKind::disk) {
    for (std::string* text : {&used, &limit})
      if (!text->empty())
        if (const auto bytes = parse_bytes(*text)) *text = format_bytes(*bytes);
  }
  if (used.empty()) return limit;
  return limit.empty() ? used : fmt::format("{} of {}", used, limit);
}

ListColumn limit_column(std::string title, QuotaKind kind) {
  return {{std::move(title), true}, [kind](const Value& quota) { return cell(quota, kind); }};
}

Outcome<int> list(Context& context, const QuotaOptions& options) {
  return print_list(context, {.target = with_workspace(resource({"quota"}), options.workspace),
                              .columns = {{{"OF"}, whose},
                                          limit_column("JOBS", QuotaKind::jobs),
                                          limit_column("TASKS", QuotaKind::tasks),
                                          limit_column("NODES", QuotaKind::nodes),
                                          limit_column("CORES", QuotaKind::cores),
                                          limit_column("GPUS", QuotaKind::gpus),
                                          limit_column("REQUESTS/S", QuotaKind::requests),
                                          limit_column("DISK", QuotaKind::disk)},
                              .id = "user",
                              .empty = "there are no quotas"});
}

Outcome<int> set(Context& context, const QuotaOptions& options) {
  std::vector<std::pair<std::string, std::string>> body;
  for (const QuotaKind kind : all_quota_kinds) {
    const std::string& limit = options.limits[static_cast<std::size_t>(kind)];
    if (limit.empty()) continue;
    if (limit != "none" && kind == QuotaKind::disk) {
      const auto bytes = parse_bytes(limit);
      if (!bytes)
        return misuse(fmt::format("--disk '{}' is neither a size nor none", limit),
                      "write it like --disk 50GiB");
      body.emplace_back("disk", std::to_string(*bytes));
      continue;
    }
    if (limit != "none" && limit.find_first_not_of("0123456789.") != std::string::npos)
      return misuse(fmt::format("--{} '{}' is neither a number nor none", to_string(kind), limit),
                    fmt::format("write it like --{} 8", to_string(kind)));
    body.emplace_back(to_string(kind), limit == "none" ? "null" : limit);
  }
  if (body.empty()) return misuse("no limit is given", "name one: --jobs 10 --gpus 8, or --gpus none");
  const std::string target =
      options.user.empty() ? resource({"quotas", "workspace"}) : resource({"quotas", "users", options.user});
  const Outcome<Value> quota =
      context.service().send("PATCH", with_workspace(target, options.workspace), wire::format_object(body));
  if (!quota) return give_up(quota);
  return print(context, *quota, whose(*quota), [&] {
    std::string text = fmt::format("quota of {}:", whose(*quota));
    for (const QuotaKind kind : all_quota_kinds)
      if (!quota->at("limits").text_at(to_string(kind)).empty())
        text += fmt::format(" {} {}", cell(*quota, kind), to_string(kind));
    return (text.ends_with(':') ? text + " no limits" : text) + "\n";
  });
}

}  // namespace

void add_quota(CommandTree& tree, Context& context) {
  auto options = std::make_shared<QuotaOptions>();
  Command quota = tree.add("quota", "What users and the workspace may have, and have", "slipway quota");
  quota.lists().runs([&context, options] { return list(context, *options); });
  quota.verb("list", "The same", "slipway quota list --workspace ml")
      .lists()
      .text("--workspace NAME", options->workspace, "another workspace; for admins of the workspace default")
      .runs([&context, options] { return list(context, *options); });
  Command verb = quota.verb("set", "Change the quota of a user or of the workspace",
                            "slipway quota set --user ana --jobs 20 --gpus 8");
  const auto limit = [&](QuotaKind kind, const char* about) {
    verb.text(fmt::format("--{} N", to_string(kind)), options->limits[static_cast<std::size_t>(kind)], about);
  };
  verb.text("--user USER", options->user,
            "of this user; '*': of each who has none (default: of the workspace as a whole)")
      .text("--workspace NAME", options->workspace, "another workspace; for admins of the workspace default");
  limit(QuotaKind::jobs, "jobs that have not ended; none: no limit, here and below");
  limit(QuotaKind::tasks, "tasks that have not ended");
  limit(QuotaKind::nodes, "nodes' worth of capacity held");
  limit(QuotaKind::cores, "cores held");
  limit(QuotaKind::gpus, "GPUs held");
  limit(QuotaKind::requests, "requests a second");
  limit(QuotaKind::disk, "disk for files, logs and code, like 50GiB; counted in the background");
  verb.runs([&context, options] { return set(context, *options); });
}

}  // namespace slipway::cli
