#include "domain/quota.h"

#include <fmt/format.h>

#include <cmath>

#include "base/quantity.h"
#include "domain/names.h"
#include "domain/usage.h"

namespace slipway {
namespace {

constexpr Names<QuotaKind, quota_kinds> names{"jobs", "tasks", "nodes", "cores", "gpus", "requests", "disk"};

double unit_of(QuotaKind kind) {
  switch (kind) {
    case QuotaKind::nodes: return node_whole;
    case QuotaKind::cores: return 1'000;
    default: return 1;
  }
}

}  // namespace

std::string_view to_string(QuotaKind kind) { return names.of(kind); }
std::optional<QuotaKind> parse_quota_kind(std::string_view text) { return names.find(text); }

double shown(QuotaKind kind, std::uint64_t amount) { return static_cast<double>(amount) / unit_of(kind); }
std::uint64_t counted(QuotaKind kind, double amount) {
  return static_cast<std::uint64_t>(std::llround(amount * unit_of(kind)));
}

std::string describe(QuotaKind kind, std::uint64_t amount) {
  const double number = shown(kind, amount);
  std::string_view word;
  switch (kind) {
    case QuotaKind::jobs: word = "job"; break;
    case QuotaKind::tasks: word = "task"; break;
    case QuotaKind::nodes: word = "node"; break;
    case QuotaKind::cores: word = "core"; break;
    case QuotaKind::gpus: word = "GPU"; break;
    case QuotaKind::disk: return format_bytes(amount) + " of disk";
    case QuotaKind::requests: return fmt::format("{} requests a second", amount);
  }
  return fmt::format("{} {}{}", std::round(number * 1000) / 1000, word, number == 1 ? "" : "s");
}

std::string describe(const QuotaKey& key) {
  if (key.user.empty()) return "workspace " + key.workspace;
  if (key.user == every_user) return "each user of workspace " + key.workspace;
  return fmt::format("{} in workspace {}", key.user, key.workspace);
}

}  // namespace slipway
