#pragma once
// Quotas of users and workspaces: set, counted live, and enforced: jobs and tasks when they are submitted,
// what is held when it is placed. (Requests a second: api/request_limits.h.)
#include <vector>

#include "control/turn.h"
#include "domain/quota.h"
#include "sched/sharing.h"

namespace slipway::control {

// Of users by admins of their workspace, of a workspace by service admins.
Result<QuotaView> change_quota(Turn& turn, const Caller& caller, const QuotaKey& key,
                               const QuotaChange& change);
QuotaView quota_view(const State& state, const QuotaKey& key);
// All with a limit or a use.
std::vector<QuotaView> quota_views(const State& state);
// The limit that holds: of a user also that of every user.
std::optional<std::uint64_t> quota_limit(const State& state, const QuotaKey& key, QuotaKind kind);

// Whether the quotas let the job in, and could ever let each of its tasks start.
Result<void> check_quotas(const State& state, const Caller& caller, const Pool& pool, const JobSpec& spec);
// Whether they let in so many more jobs and tasks of its user.
Result<void> check_more_tasks(const State& state, const QuotaKey& user, std::uint64_t jobs,
                              std::uint64_t tasks);
// What is exceeded, by what, and who can raise it.
Error describe_quota(const QuotaKey& key, QuotaKind kind, std::uint64_t max, std::uint64_t used,
                     std::uint64_t more);

// What quotas leave, for the next plan of a pool. O(users), and nothing where the workspace has no quotas.
void set_rooms(const State& state, const std::string& workspace, sched::Sharing& sharing);

// ── disk ──
// Counted in the background and by thing (domain/quota.h): what a job may still write is not known when it is
// submitted, so it is let in while less than the limit is used.

// `before` is what was counted of it last.
void count_disk(Turn& turn, const DiskUse& use, std::uint64_t before);
Error describe_full_disk(const QuotaKey& key, std::uint64_t max, std::uint64_t used);

enum class Count : std::uint8_t { add, take };
void count_jobs(State& state, const Job& job, Count count);
void count_tasks(State& state, const Job& job, Count count, std::uint64_t tasks);
// What a part of an attempt holds of a node. What it gives back may be what others wait for.
void count_held(State& state, const Job& job, Count count, sched::Share share, const Resources& held);

// For the simulation: "" or what is wrong.
std::string broken_quotas(const State& state);

}  // namespace slipway::control
