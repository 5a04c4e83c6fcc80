#include "wire/quota.h"

#include <fmt/format.h>

#include "wire/document.h"
#include "wire/fields.h"
#include "wire/json.h"

namespace slipway::wire {
namespace {

constexpr double amount_max = 1e9;
constexpr std::int64_t disk_max = std::int64_t{1} << 53;  // as exact as numbers of JSON are

// Whole numbers without a fraction.
Json number(QuotaKind kind, std::uint64_t amount) {
  const double value = shown(kind, amount);
  return value == static_cast<double>(static_cast<std::uint64_t>(value))
             ? Json(static_cast<std::uint64_t>(value))
             : Json(value);
}

}  // namespace

Result<QuotaChange> parse_quota_change(std::string_view json) {
  const auto root = parse_body(json);
  if (!root) return fail(root.error());
  FieldReader reader(*root, "the request", "");
  QuotaChange change;
  bool is_empty = true;
  for (const QuotaKind kind : all_quota_kinds) {
    const std::string_view name = to_string(kind);
    auto& limit = change.limits[static_cast<std::size_t>(kind)];
    const Value* given = root->find(name);
    is_empty = is_empty && !given;
    if (!reader.value(name)) {
      if (given) limit.emplace(std::nullopt);  // null: no limit any more
      continue;
    }
    if (kind == QuotaKind::disk) {
      limit.emplace(static_cast<std::uint64_t>(reader.integer(name, 0, disk_max, 0)));
      continue;
    }
    const bool has_parts = kind == QuotaKind::nodes || kind == QuotaKind::cores;
    const double amount = has_parts ? reader.number(name, 0, amount_max, 0)
                                    : static_cast<double>(reader.integer(name, kind == QuotaKind::requests,
                                                                         std::int64_t{1'000'000'000}, 0));
    limit.emplace(counted(kind, amount));
  }
  if (auto finished = reader.finish(); !finished) return fail(finished.error());
  if (is_empty)
    return fail(ErrorCode::invalid, "the request changes nothing",
                R"(name a limit: {"gpus": 8}, or {"gpus": null} for none)");
  return change;
}

std::string format(const QuotaView& quota) {
  Json json{{"workspace", quota.key.workspace}, {"scope", quota.key.user.empty() ? "workspace" : "user"}};
  json["user"] = quota.key.user.empty() ? Json() : Json(quota.key.user);
  for (const QuotaKind kind : all_quota_kinds) {
    const std::string name(to_string(kind));
    json["limits"][name] = quota.limits[kind] ? number(kind, *quota.limits[kind]) : Json();
    const bool is_counted = kind != QuotaKind::disk || quota.limits[kind] || quota.used[kind] > 0;
    if (kind != QuotaKind::requests && is_counted) json["used"][name] = number(kind, quota.used[kind]);
  }
  return dump(json);
}

}  // namespace slipway::wire
