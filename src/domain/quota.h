#pragma once
// What a user, or a workspace as a whole, may have at a time, over all pools. (What a user may hold of one
// pool is its policy: domain/policy.h.)
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"

namespace slipway {

enum class QuotaKind : std::uint8_t {
  jobs,      // that have not ended
  tasks,     // likewise
  nodes,     // worth of capacity held: four quarters of a node count as one
  cores,     // held; counted in thousandths
  gpus,      // held
  requests,  // a second
  disk,      // bytes in the data folder; counted in the background, where it has a limit
};
inline constexpr std::size_t quota_kinds = 7;
inline constexpr QuotaKind all_quota_kinds[] = {QuotaKind::jobs,  QuotaKind::tasks, QuotaKind::nodes,
                                                QuotaKind::cores, QuotaKind::gpus,  QuotaKind::requests,
                                                QuotaKind::disk};
std::string_view to_string(QuotaKind kind);
std::optional<QuotaKind> parse_quota_kind(std::string_view text);

// An amount of each kind, in the units that are counted: nodes in parts of domain/usage.h's node_whole.
class QuotaAmounts {
 public:
  std::uint64_t& operator[](QuotaKind kind) { return amounts_[static_cast<std::size_t>(kind)]; }
  std::uint64_t operator[](QuotaKind kind) const { return amounts_[static_cast<std::size_t>(kind)]; }
  friend bool operator==(const QuotaAmounts&, const QuotaAmounts&) = default;

 private:
  std::array<std::uint64_t, quota_kinds> amounts_{};
};
// "3 jobs", "1.5 cores", "2 GPUs", "0.25 nodes".
std::string describe(QuotaKind kind, std::uint64_t amount);
// In what people write: 1.5 cores, 0.25 nodes.
double shown(QuotaKind kind, std::uint64_t amount);
std::uint64_t counted(QuotaKind kind, double shown);

class QuotaLimits {  // absent: no limit
 public:
  std::optional<std::uint64_t>& operator[](QuotaKind kind) { return limits_[static_cast<std::size_t>(kind)]; }
  const std::optional<std::uint64_t>& operator[](QuotaKind kind) const {
    return limits_[static_cast<std::size_t>(kind)];
  }
  bool is_empty() const { return *this == QuotaLimits(); }
  friend bool operator==(const QuotaLimits&, const QuotaLimits&) = default;

 private:
  std::array<std::optional<std::uint64_t>, quota_kinds> limits_{};
};

// Every user of a workspace who has no limit of that kind.
inline constexpr std::string_view every_user = "*";

struct QuotaKey {
  std::string workspace;
  std::string user;  // empty: the workspace as a whole
  friend auto operator<=>(const QuotaKey&, const QuotaKey&) = default;
};
std::string describe(
    const QuotaKey& key);  // "ana in workspace ml", "workspace ml", "each user of workspace ml"

struct QuotaRecord {
  QuotaKey key;
  QuotaLimits limits;
  std::string author;
  TimePoint changed_at{};
  friend bool operator==(const QuotaRecord&, const QuotaRecord&) = default;
};

// What one thing takes of the disk: a job's folder, the code that jobs of a user came with, a datastore of
// the service.
struct DiskUse {
  QuotaKey key;       // of whom; of a datastore: of nobody but the workspace
  std::string thing;  // job_3, code/HASH, datastore/NAME
  std::uint64_t bytes = 0;
  friend bool operator==(const DiskUse&, const DiskUse&) = default;
};

// What a request changes: what is absent stays as it is, a null takes the limit away.
struct QuotaChange {
  std::array<std::optional<std::optional<std::uint64_t>>, quota_kinds> limits{};
};

struct QuotaView {
  QuotaKey key;
  QuotaLimits limits;  // those that hold, also where they are every user's
  QuotaAmounts used;
};

}  // namespace slipway
