#include "control/quotas.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/check.h"
#include "base/log.h"
#include "domain/gang.h"

namespace slipway::control {
namespace {

// The user's, and the workspace's.
std::vector<QuotaKey> keys_of(const Job& job) {
  return {{job.record.workspace, job.record.submitted_by}, {job.record.workspace, {}}};
}

void count(State& state, const QuotaKey& key, QuotaKind kind, Count count, std::uint64_t amount) {
  std::uint64_t& used = state.quota_used[key][kind];
  SLIPWAY_CHECK(count == Count::add || used >= amount);
  used = count == Count::add ? used + amount : used - amount;
}

bool has_quotas(const State& state, const std::string& workspace) {
  const auto first = state.quotas.lower_bound({workspace, {}});
  return first != state.quotas.end() && first->first.workspace == workspace;
}

bool is_disk_counted(const State& state, const std::string& workspace) {
  for (auto at = state.quotas.lower_bound({workspace, {}});
       at != state.quotas.end() && at->first.workspace == workspace; ++at)
    if (at->second.limits[QuotaKind::disk]) return true;
  return false;
}

std::uint64_t used_of(const State& state, const QuotaKey& key, QuotaKind kind) {
  const auto found = state.quota_used.find(key);
  return found == state.quota_used.end() ? 0 : found->second[kind];
}

// `own` and what it needs are compared with the limit alone where nothing is used of it: could it ever start?
Result<void> check_one(const State& state, const QuotaKey& key, QuotaKind kind, std::uint64_t more,
                       bool counts_used) {
  const auto max = quota_limit(state, key, kind);
  const std::uint64_t used = counts_used ? used_of(state, key, kind) : 0;
  if (!max || more == 0 || used + more <= *max) return {};
  return fail(describe_quota(key, kind, *max, used, more));
}

sched::QuotaRooms rooms_of(const State& state, const QuotaKey& key) {
  sched::QuotaRooms rooms;
  for (const QuotaKind kind : {QuotaKind::nodes, QuotaKind::cores, QuotaKind::gpus})
    if (const auto max = quota_limit(state, key, kind))
      rooms.push_back({kind, *max, used_of(state, key, kind)});
  return rooms;
}

// Tasks may be waiting for what their user or workspace holds elsewhere.
void look_again(State& state, const std::string& workspace) {
  if (!has_quotas(state, workspace)) return;
  for (auto at = state.pools.lower_bound(workspace + "/"); at != state.pools.end(); ++at) {
    if (at->second.record.workspace != workspace) break;
    at->second.changed = true;
  }
}

}  // namespace

// ── limits ──

std::optional<std::uint64_t> quota_limit(const State& state, const QuotaKey& key, QuotaKind kind) {
  const auto own = state.quotas.find(key);
  if (own != state.quotas.end() && own->second.limits[kind]) return own->second.limits[kind];
  if (key.user.empty()) return std::nullopt;
  const auto all = state.quotas.find({key.workspace, std::string(every_user)});
  return all == state.quotas.end() ? std::nullopt : all->second.limits[kind];
}

QuotaView quota_view(const State& state, const QuotaKey& key) {
  QuotaView view{key, {}, {}};
  for (const QuotaKind kind : all_quota_kinds) view.limits[kind] = quota_limit(state, key, kind);
  if (const auto used = state.quota_used.find(key); used != state.quota_used.end()) view.used = used->second;
  if (!is_disk_counted(state, key.workspace)) view.used[QuotaKind::disk] = 0;  // it would be an old number
  return view;
}

std::vector<QuotaView> quota_views(const State& state) {
  std::set<QuotaKey> keys;
  for (const auto& [key, record] : state.quotas) keys.insert(key);
  for (const auto& [key, used] : state.quota_used) keys.insert(key);
  std::vector<QuotaView> views;
  for (const QuotaKey& key : keys) views.push_back(quota_view(state, key));
  return views;
}

Result<QuotaView> change_quota(Turn& turn, const Caller& caller, const QuotaKey& key,
                               const QuotaChange& change) {
  const bool is_elsewhere = key.workspace != caller.workspace;
  if ((key.user.empty() || is_elsewhere) && caller.workspace != "default")
    return fail(ErrorCode::denied,
                fmt::format("the quota of {} is set by those who run the service", describe(key)),
                "an admin of workspace default may");
  if (!key.user.empty() && key.user != every_user)
    if (auto named = validate_name("user", key.user); !named) return fail(named.error());
  if (auto named = validate_name("workspace", key.workspace); !named) return fail(named.error());
  const auto known = turn.state.quotas.find(key);
  QuotaRecord record = known == turn.state.quotas.end() ? QuotaRecord{key, {}, {}, {}} : known->second;
  const QuotaLimits before = record.limits;
  for (const QuotaKind kind : all_quota_kinds)
    if (const auto& to = change.limits[static_cast<std::size_t>(kind)]) record.limits[kind] = *to;
  if (record.limits == before) return quota_view(turn.state, key);
  record.author = caller.name;
  record.changed_at = turn.now;
  std::erase_if(turn.effects.changes.quotas, [&](const QuotaRecord& one) { return one.key == key; });
  std::erase_if(turn.effects.outputs.quotas, [&](const QuotaRecord& one) { return one.key == key; });
  turn.effects.changes.quotas.push_back(record);  // one without limits takes its row away
  turn.effects.outputs.quotas.push_back(record);
  if (record.limits.is_empty())
    turn.state.quotas.erase(key);
  else
    turn.state.quotas[key] = record;
  look_again(turn.state, key.workspace);
  for (auto& [name, pool] : turn.state.pools)  // the last quota may be gone
    if (pool.record.workspace == key.workspace) pool.changed = true;
  record_event_in(turn, key.workspace, "quota.changed",
                  fmt::format("{} changed the quota of {}", caller.name, describe(key)), {}, {});
  return quota_view(turn.state, key);
}

Error describe_quota(const QuotaKey& key, QuotaKind kind, std::uint64_t max, std::uint64_t used,
                     std::uint64_t more) {
  const bool is_alone = used == 0;
  const std::string who = key.user.empty() ? describe(key) : key.user;
  const std::string needs = kind == QuotaKind::jobs ? "1 more job" : describe(kind, more);
  return {
      ErrorCode::denied,
      is_alone
          ? fmt::format("this needs {}, and the quota of {} is {}", needs, describe(key), describe(kind, max))
          : fmt::format("{} has {} and needs {} more, and the quota of {} is {}", who, describe(kind, used),
                        describe(kind, more), describe(key), describe(kind, max)),
      key.user.empty()
          ? fmt::format("an admin of workspace default raises it: slipway quota set --workspace {} --{} N",
                        key.workspace, to_string(kind))
          : fmt::format("an admin of workspace {} raises it: slipway quota set --user {} --{} N",
                        key.workspace, key.user, to_string(kind))};
}

// ── at the door ──

Result<void> check_quotas(const State& state, const Caller& caller, const Pool& pool, const JobSpec& spec) {
  if (!has_quotas(state, caller.workspace)) return {};
  std::uint64_t tasks = 0;
  for (const TaskSpec& task : spec.tasks) tasks += task.tasks();
  for (const QuotaKey& key : {QuotaKey{caller.workspace, caller.name}, QuotaKey{caller.workspace, {}}}) {
    if (auto may = check_one(state, key, QuotaKind::jobs, 1, true); !may) return may;
    if (auto may = check_one(state, key, QuotaKind::tasks, tasks, true); !may) return may;
    if (const auto max = quota_limit(state, key, QuotaKind::disk))
      if (const std::uint64_t used = used_of(state, key, QuotaKind::disk); used >= *max)
        return fail(describe_full_disk(key, *max, used));
    for (const TaskSpec& task : spec.tasks) {
      const std::uint32_t nodes = task.is_elastic() ? task.nodes_min : task.nodes;
      const Resources need = need_per_node(task, task.nodes);
      const QuotaAmounts held = sched::held_amounts(pool.capacity.share(need) * nodes, need, nodes);
      for (const QuotaKind kind : {QuotaKind::nodes, QuotaKind::cores, QuotaKind::gpus})
        if (auto may = check_one(state, key, kind, held[kind], false); !may) {
          Error error = may.error();
          error.what = fmt::format("task {}: {}", task.name, error.what);
          return fail(error);
        }
    }
  }
  return {};
}

Result<void> check_more_tasks(const State& state, const QuotaKey& user, std::uint64_t jobs,
                              std::uint64_t tasks) {
  if (!has_quotas(state, user.workspace)) return {};
  for (const QuotaKey& key : {user, QuotaKey{user.workspace, {}}}) {
    if (jobs > 0)
      if (auto may = check_one(state, key, QuotaKind::jobs, jobs, true); !may) return may;
    if (auto may = check_one(state, key, QuotaKind::tasks, tasks, true); !may) return may;
  }
  return {};
}

// ── disk ──

Error describe_full_disk(const QuotaKey& key, std::uint64_t max, std::uint64_t used) {
  Error error = describe_quota(key, QuotaKind::disk, max, used, 0);
  error.what =
      fmt::format("{} has {}, and the quota of {} is {}", key.user.empty() ? describe(key) : key.user,
                  describe(QuotaKind::disk, used), describe(key), describe(QuotaKind::disk, max));
  error.hint = "delete jobs and files that are not needed (slipway job delete), or " + error.hint;
  return error;
}

void count_disk(Turn& turn, const DiskUse& use, std::uint64_t before) {
  turn.effects.changes.disk.push_back(use);
  std::vector<QuotaKey> keys{{use.key.workspace, {}}};
  if (!use.key.user.empty()) keys.push_back(use.key);
  for (const QuotaKey& key : keys) {
    std::uint64_t& used = turn.state.quota_used[key][QuotaKind::disk];
    // The rows are what is true, and a restart adds them up again: a sum that disagrees ends nobody's work.
    if (used < before)
      log::error("quota.disk",
                 {{"workspace", key.workspace}, {"user", key.user}, {"sum", used}, {"row", before}});
    used = std::max(used, before) - before + use.bytes;
    turn.effects.outputs.disk.emplace_back(key, used);
  }
}

// ── placing ──

void set_rooms(const State& state, const std::string& workspace, sched::Sharing& sharing) {
  if (!has_quotas(state, workspace)) return sharing.set_rooms({}, {});
  std::unordered_map<std::size_t, sched::QuotaRooms> users;
  for (std::size_t user = 0; user < sharing.users(); ++user)
    if (auto rooms = rooms_of(state, {workspace, sharing.name(sched::UserId{user})}); !rooms.empty())
      users.emplace(user, std::move(rooms));
  sharing.set_rooms(rooms_of(state, {workspace, {}}), std::move(users));
}

// ── counts ──

void count_jobs(State& state, const Job& job, Count how) {
  for (const QuotaKey& key : keys_of(job)) count(state, key, QuotaKind::jobs, how, 1);
}

void count_tasks(State& state, const Job& job, Count how, std::uint64_t tasks) {
  for (const QuotaKey& key : keys_of(job)) count(state, key, QuotaKind::tasks, how, tasks);
}

void count_held(State& state, const Job& job, Count how, sched::Share share, const Resources& held) {
  const QuotaAmounts amounts = sched::held_amounts(share, held, 1);
  for (const QuotaKey& key : keys_of(job))
    for (const QuotaKind kind : {QuotaKind::nodes, QuotaKind::cores, QuotaKind::gpus})
      count(state, key, kind, how, amounts[kind]);
  if (how == Count::take) look_again(state, job.record.workspace);
}

std::string broken_quotas(const State& state) {
  std::map<QuotaKey, QuotaAmounts> sums;
  for (const auto& [id, job] : state.jobs) {
    const bool is_over = is_terminal(job.record.state);  // and dropped once it is saved
    const TaskCounts& counts = job.record.counts;
    for (const QuotaKey& key : keys_of(job)) {
      sums[key][QuotaKind::jobs] += !is_over;
      sums[key][QuotaKind::tasks] += counts.waiting + counts.queued + counts.active;
    }
    for (const Group& group : job.groups) {
      if (!group.live) continue;
      for (const auto& [index, task] : *group.live)
        if (task.attempt)
          for (const Member& member : task.attempt->members)
            if (member.phase != MemberPhase::released)
              for (const QuotaKey& key : keys_of(job))
                sched::add(sums[key], sched::held_amounts(member.share, member.granted, 1));
    }
  }
  for (const auto& [key, used] : state.quota_used) {
    QuotaAmounts sum = sums[key];
    sum[QuotaKind::disk] = used[QuotaKind::disk];  // not known from what is live
    if (!(sum == used)) return fmt::format("the use of {} is miscounted", describe(key));
  }
  for (const auto& [key, sum] : sums)
    if (!state.quota_used.contains(key)) return fmt::format("the use of {} is not counted", describe(key));
  return {};
}

}  // namespace slipway::control
