#include "keeper/recover.h"

#include <fmt/format.h>
#include <poll.h>

#include <chrono>
#include <csignal>
#include <utility>

#include "keeper/cgroup_files.h"
#include "keeper/journal.h"
#include "keeper/process_tree.h"

namespace slipway::keeper {
namespace {

Result<void> end_leftovers(const JournalHeader& header) {
  for (const std::string& folder : header.cgroups)
    if (auto cleared = clear_cgroup(folder); !cleared) return cleared;
  const KeeperIdentity dead{header.keeper};
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

Result<Recovered> recover(const std::string& journal_path, const std::string& boot, TimePoint now) {
  Result<std::optional<JournalContent>> journal = read_journal(journal_path);
  if (!journal) return fail(journal.error());
  if (!*journal) return Recovered{};
  JournalContent& left = **journal;
  const bool same_boot = left.header.boot == boot;
  if (same_boot)
    if (auto ended = end_leftovers(left.header); !ended) return fail(ended.error());
  for (const Intent& intent : left.open) {
    ProcessEnded end;
    end.key = intent.key;
    end.rank = intent.rank;
    end.kind = ProcessEndKind::lost;
    end.counts_against_retries = false;
    end.detail = same_boot ? "the node's keeper died and its processes were ended"
                           : "the node's machine was restarted";
    end.started_at = intent.time;
    end.ended_at = now;
    left.ended.push_back(std::move(end));
  }
  return Recovered{std::move(left.ended), std::move(left.duties)};
}

}  // namespace slipway::keeper
