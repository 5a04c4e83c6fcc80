#include "keeper/recover.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <utility>

#include "keeper/cgroup.h"
#include "keeper/cgroup_files.h"
#include "keeper/journal.h"

namespace slipway::keeper {
namespace {

Result<void> end_leftovers(const KeeperIdentity& dead) {
  const auto deadline = std::chrono::steady_clock::now() + 10s;
  for (std::vector<FoundProcess> left = find_all(dead); !left.empty(); left = find_all(dead)) {
    if (std::chrono::steady_clock::now() > deadline)
      return fail(ErrorCode::unavailable,
                  fmt::format("process {} of an earlier keeper does not end, even when killed", left[0].pid),
                  "see what it waits for, or restart the machine");
    for (const FoundProcess& process : left) send_signal(process, SIGKILL);
    ::poll(nullptr, 0, 1);  // killed ones take a little to be gone; new ones may have been forked meanwhile
  }
  return {};
}

}  // namespace

Result<Recovered> recover(const std::string& journal_path, const KeeperIdentity& next,
                          const std::string& boot, TimePoint now) {
  Result<std::optional<JournalContent>> journal = read_journal(journal_path);
  if (!journal) return fail(journal.error());
  std::vector<std::string> cgroups = CgroupPool::left_by(next.folder_id());
  if (*journal && (*journal)->header.boot == boot)
    cgroups.insert(cgroups.end(), (*journal)->header.cgroups.begin(), (*journal)->header.cgroups.end());
  for (const std::string& folder : cgroups)
    if (auto cleared = clear_cgroup(folder); !cleared) return fail(cleared.error());
  if (auto ended = end_leftovers(next); !ended) return fail(ended.error());
  if (!*journal) return Recovered{};
  JournalContent& left = **journal;
  const bool same_boot = left.header.boot == boot;
  // One of an earlier version is known by its id alone.
  if (const KeeperIdentity dead{left.header.keeper}; same_boot && dead.folder_id() != next.folder_id())
    if (auto ended = end_leftovers(dead); !ended) return fail(ended.error());
  for (const Intent& intent : left.open) {
    ProcessEnded end;
    end.key = intent.key;
    end.rank = intent.rank;
    end.kind = ProcessEndKind::lost;
    end.counts_against_retries = false;
    end.detail = same_boot ? "the node's keeper died and its processes were ended"
                           : "the node's machine was restarted";
    end.started_at = intent.time;
    end.ended_at = std::max(now, intent.time);  // the clock may have been set back
    left.ended.push_back(std::move(end));
  }
  return Recovered{std::move(left.ended), std::move(left.duties)};
}

}  // namespace slipway::keeper
