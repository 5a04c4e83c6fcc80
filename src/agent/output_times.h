#pragma once
// When processes wrote what: beside the streams of an attempt lies a list of times (domain/output_times.h),
// so that stdout and stderr can be shown in the order in which they were written.
//
// A stream is looked at when it grows (inotify), at most every 5 ms; writes between two looks count as one.
// The list is a hint: what it does not say is taken from the files themselves, so a process whose streams
// grew only once has none.
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "domain/ids.h"
#include "domain/output_times.h"
#include "keeper/protocol.h"
#include "net/loop.h"

namespace slipway::agent {

class OutputTimes {
 public:
  explicit OutputTimes(net::Loop& loop) : loop_(loop) {}

  void ordered(const keeper::StartRequest& request);
  void started(const ProcessStarted& process);  // also one that an earlier agent started
  void ended(const WorkKey& key, std::uint32_t rank);

 private:
  using Name = std::pair<WorkKey, std::uint32_t>;
  struct Process {
    std::string files[2];
    std::uint64_t sizes[2] = {0, 0};
    int watches[2] = {-1, -1};
    OutputTimeList list;
    bool is_started = false;
  };
  void watch_new();
  bool open();
  void on_events();
  void look(Process& process, std::size_t stream);
  static void save(Process& process, bool is_over);

  net::Loop& loop_;
  Fd inotify_;
  std::shared_ptr<net::Loop::Watch> readable_;
  std::shared_ptr<net::Loop::Timer> pause_;
  std::map<Name, Process> processes_;
  std::map<int, std::pair<Name, std::size_t>> watched_;  // by inotify's number
  std::vector<Name> new_;                                // started, not yet watched
};

}  // namespace slipway::agent
