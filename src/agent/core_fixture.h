#pragma once
// An AgentCore without its edge, for tests: what it is handed, and what it sent and did, as text.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "agent/core.h"

namespace slipway::agent {

inline constexpr SessionId one{1};
inline constexpr SessionId two{2};

inline AttemptKey key(std::uint32_t index, std::uint32_t attempt = 1) {
  return {{JobId(7), 0, index}, attempt};
}

inline StartOrder order(std::uint32_t index, bool prefetched = false, std::uint32_t processes = 1) {
  StartOrder order;
  order.key = key(index);
  order.folder = "jobs/job_7/" + std::to_string(index);
  order.prefetched = prefetched;
  for (std::uint32_t rank = 0; rank < processes; ++rank)
    order.processes.push_back({rank, {"true"}, {}, "stdout.txt", "stderr.txt", "wd", {}});
  return order;
}

inline StartOrder with_source(std::uint32_t index, bool prefetched = false, std::uint32_t processes = 1) {
  StartOrder staged = order(index, prefetched, processes);
  staged.source = std::string(64, 'a');
  return staged;
}

// A core, and what it sent and did since last asked, as text.
class AgentCoreTest : public ::testing::Test {
 protected:
  AgentCore core{{.name = "n1",
                  .pool = "lab",
                  .instance = "i",
                  .address = "127.64.0.1",
                  .host = "h",
                  .version = "v",
                  .local = true,
                  .shares_storage = true,
                  .total = {.cores = 2000, .memory = 0, .gpus = 0},
                  .notes = {"a"}}};
  TimePoint now{1000h};
  std::vector<FromAgent> sent;
  std::optional<TimePoint> renewed;
  std::uint64_t number = 0;

  std::vector<std::string> effects() {
    std::vector<std::string> words;
    for (Effect& effect : core.take_effects(now)) {
      if (const auto* renew = std::get_if<effect::RenewLease>(&effect))
        renewed = renew->from;
      else
        words.push_back(describe(effect));
    }
    return words;
  }
  std::string describe(Effect& effect) {
    if (auto* send = std::get_if<effect::Send>(&effect)) {
      sent.push_back(send->message);
      if (const auto* report = std::get_if<Report>(&send->message)) {
        std::string text = "report " + std::to_string(report->number);
        for (const auto& ready : report->prepared)
          text += " =" + name(ready.key) + (ready.problem.empty() ? "" : ":" + ready.problem);
        for (const auto& start : report->started) text += " +" + name(start.key, start.rank);
        for (const auto& end : report->ended) text += " -" + name(end.key, end.rank) + ":" + kind(end.kind);
        return text;
      }
      return "hello";
    }
    if (auto* start = std::get_if<effect::Start>(&effect)) return "start " + name(start->order.key);
    if (auto* stop = std::get_if<effect::Stop>(&effect)) return "stop " + name(stop->order.key);
    if (auto* stage = std::get_if<effect::Stage>(&effect)) return "stage " + name(stage->order.key);
    if (auto* write = std::get_if<effect::WriteFiles>(&effect)) return "write " + name(write->order.key);
    if (auto* release = std::get_if<effect::Release>(&effect)) return "release " + name(release->key);
    if (auto* quit = std::get_if<effect::Quit>(&effect))
      return "quit" + (quit->reason.empty() ? "" : " " + quit->reason);
    if (auto* forget = std::get_if<effect::Forget>(&effect)) {
      std::string text = "forget";
      for (const WorkKey& one_key : forget->keys) text += " " + name(one_key);
      return text;
    }
    return "close";
  }
  static std::string kind(ProcessEndKind kind) {
    const char* const names[] = {"exited", "signalled", "start_failed", "lost", "not_started"};
    return names[static_cast<int>(kind)];
  }
  static std::string name(const WorkKey& of, std::uint32_t rank = 0) {
    return std::to_string(slipway::attempt_of(of)->task.index) +
           (rank == 0 ? "" : "/" + std::to_string(rank));
  }

  void join() {
    core.keeper_connected({}, now);
    core.connected(one, now);
    core.received(one, Welcome{NodeId(1)}, now);
    ASSERT_EQ(effects(), std::vector<std::string>{"hello"});
  }
  void send(Orders orders) {
    orders.number = ++number;
    core.received(one, std::move(orders), now);
  }
  void start(std::uint32_t index, std::uint32_t rank = 0) {
    core.started({key(index), rank, 100 + index, now});
  }
  void end(std::uint32_t index, std::uint32_t rank = 0) {
    ProcessEnded ended;
    ended.key = key(index);
    ended.rank = rank;
    core.ended(ended);
  }
  using Words = std::vector<std::string>;
};

}  // namespace slipway::agent
