// How much a keeper costs: N × /bin/true, two at a time, through a keeper (with the folders and files of a
// task) against the bare posix_spawn and waitpid loop, alternating in one run.
//
//   slipway_keeper_bench FOLDER [N=2000] [ROUNDS=5]     FOLDER is made and left: deleting it would slow what
//   follows
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/file.h"
#include "keeper/keeper.h"
#include "keeper/protocol.h"
#include "keeper/socket.h"

namespace {

using namespace slipway;
using namespace slipway::keeper;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double bare_loop(int count) {
  const auto begin = Clock::now();
  char program[] = "/bin/true";
  char* argv[] = {program, nullptr};
  int started = 0;
  int ended = 0;
  while (ended < count) {
    while (started < count && started - ended < 2) {
      pid_t pid = 0;
      SLIPWAY_CHECK(::posix_spawn(&pid, program, nullptr, nullptr, argv, environ) == 0);
      ++started;
    }
    SLIPWAY_CHECK(::waitpid(-1, nullptr, 0) > 0);
    ++ended;
  }
  return seconds_since(begin);
}

struct Keeper {
  pid_t pid = 0;
  Fd socket;
  std::string in;
};

Keeper start_keeper(const std::string& folder) {
  SLIPWAY_CHECK(make_folders(folder).has_value());
  int ready[2];
  SLIPWAY_CHECK(::pipe(ready) == 0);
  Keeper keeper;
  keeper.pid = ::fork();
  if (keeper.pid == 0) {
    ::dup2(ready[1], STDOUT_FILENO);
    ::_exit(run_keeper({folder}));
  }
  ::close(ready[1]);
  char byte = 0;
  SLIPWAY_CHECK(::read(ready[0], &byte, 1) == 1);
  ::close(ready[0]);
  auto socket = connect_keeper(folder);
  SLIPWAY_CHECK(socket.has_value());
  keeper.socket = std::move(*socket);
  return keeper;
}

void send_all(const Keeper& keeper, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::send(keeper.socket.get(), bytes.data(), bytes.size(), 0);
    if (put < 0) {
      pollfd writable{keeper.socket.get(), POLLOUT, 0};
      ::poll(&writable, 1, -1);
      continue;
    }
    bytes.remove_prefix(static_cast<std::size_t>(put));
  }
}

// Calls use(message) for what has arrived, waiting for at least some bytes.
template <class Use>
void receive(Keeper& keeper, const Use& use) {
  pollfd readable{keeper.socket.get(), POLLIN, 0};
  ::poll(&readable, 1, -1);
  char buffer[65536];
  const ssize_t got = ::recv(keeper.socket.get(), buffer, sizeof buffer, 0);
  SLIPWAY_CHECK(got > 0);
  keeper.in.append(buffer, static_cast<std::size_t>(got));
  std::string_view rest = keeper.in;
  for (auto frame = take_frame(rest); frame && *frame; frame = take_frame(rest)) {
    const auto message = parse_from_keeper(**frame);
    SLIPWAY_CHECK(message.has_value());
    use(*message);
  }
  keeper.in.erase(0, keeper.in.size() - rest.size());
}

ToKeeper task(const std::string& data, int round, int index, bool whole) {
  StartRequest start;
  start.key = AttemptKey{{JobId(static_cast<std::uint64_t>(round)), 0, static_cast<std::uint32_t>(index)}, 1};
  ProcessSpec process;
  process.resources.cores = 1000;
  process.argv = {"/bin/true"};
  for (char** variable = environ; *variable != nullptr; ++variable) process.environment.push_back(*variable);
  const std::string attempt = fmt::format("{}/round-{}/sweep[{}].1", data, round, index);
  process.folders = {attempt, attempt + "/wd"};
  if (whole) process.folders = {attempt, attempt + "/outputs", attempt + "/wd", data + "/shared"};
  process.stdout_file = attempt + "/stdout.txt";
  process.stderr_file = attempt + "/stderr.txt";
  process.working_folder = attempt + "/wd";
  start.processes = {process};
  return start;
}

double through_keeper(Keeper& keeper, const std::string& data, int round, int count, bool whole) {
  const auto begin = Clock::now();
  int started = 0;
  int ended = 0;
  std::string out;
  while (ended < count) {
    while (started < count && started - ended < 2) append_frame(out, task(data, round, started++, whole));
    send_all(keeper, std::exchange(out, {}));
    ForgetRequest forget;
    receive(keeper, [&](const FromKeeper& message) {
      const auto* end = std::get_if<ProcessEnded>(&message);
      if (end == nullptr) return;
      if (end->kind != ProcessEndKind::exited || end->code != 0)
        std::fprintf(stderr, "unexpected end: %s\n", end->detail.c_str());
      ++ended;
      forget.keys.push_back(end->key);
    });
    if (!forget.keys.empty()) append_frame(out, ToKeeper(forget));
  }
  send_all(keeper, out);
  return seconds_since(begin);
}

std::string memory_of(pid_t pid) {
  const auto status = read_file(fmt::format("/proc/{}/status", pid));
  const std::size_t at = status ? status->find("VmRSS") : std::string::npos;
  if (at == std::string::npos) return "unknown";
  const std::string line = status->substr(at, status->find('\n', at) - at);
  const auto smaps = read_file(fmt::format("/proc/{}/smaps_rollup", pid));
  std::string pss;
  if (smaps) {
    const std::size_t begin = smaps->find("Pss:");
    pss = smaps->substr(begin, smaps->find('\n', begin) - begin);
  }
  return line + " " + pss;
}

// CPU seconds of this process and of the keeper, with all they have waited for. On a machine that others use
// too, the ratio of these says more than that of the times.
double cpu_used(pid_t keeper) {
  double total = 0;
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage{};
    ::getrusage(who, &usage);
    total += static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
             static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
  }
  const auto stat = read_file(fmt::format("/proc/{}/stat", keeper));
  long user = 0, system = 0, children_user = 0, children_system = 0;
  std::sscanf(stat->c_str() + stat->rfind(')') + 1,
              " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %ld %ld %ld %ld", &user, &system, &children_user,
              &children_system);
  return total + static_cast<double>(user + system + children_user + children_system) /
                     static_cast<double>(::sysconf(_SC_CLK_TCK));
}

long steal_ticks() {
  const auto stat = read_file("/proc/stat");
  long user = 0, nice = 0, system = 0, idle = 0, wait = 0, irq = 0, soft = 0, steal = 0;
  std::sscanf(stat->c_str(), "cpu %ld %ld %ld %ld %ld %ld %ld %ld", &user, &nice, &system, &idle, &wait, &irq,
              &soft, &steal);
  return steal;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s FOLDER [N=2000] [ROUNDS=5]\n", argv[0]);
    return 2;
  }
  const std::string base = argv[1];
  const int count = argc > 2 ? std::atoi(argv[2]) : 2000;
  const int rounds = argc > 3 ? std::atoi(argv[3]) : 5;
  Keeper keeper = start_keeper(base + "/node");
  std::string out;
  append_frame(out, ToKeeper(ListRequest{}));
  send_all(keeper, out);
  receive(keeper, [](const FromKeeper&) {});
  std::printf("keeper idle: %s\n", memory_of(keeper.pid).c_str());
  struct Way {
    const char* name;
    std::function<double(int round)> run;
  };
  const Way ways[] = {
      {"bare loop", [&](int) { return bare_loop(count); }},
      {"keeper, 2 folders",
       [&](int round) { return through_keeper(keeper, base + "/data", 2 * round, count, false); }},
      {"keeper, whole layout",
       [&](int round) { return through_keeper(keeper, base + "/data", 2 * round + 1, count, true); }},
  };
  bare_loop(200);
  for (int round = 1; round <= rounds; ++round) {
    double bare_time = 0;
    double bare_cpu = 0;
    for (const Way& way : ways) {
      const long steal = steal_ticks();
      const double cpu_before = cpu_used(keeper.pid);
      const double time = way.run(round);
      const double cpu = cpu_used(keeper.pid) - cpu_before;
      if (bare_time == 0) bare_time = time, bare_cpu = cpu;
      std::printf("round %d  %-22s %6.0f/s  %5.1f %% of bare   %6.0f us CPU each, %5.1f %%   steal %ld\n",
                  round, way.name, count / time, 100 * bare_time / time, 1e6 * cpu / count,
                  100 * bare_cpu / cpu, steal_ticks() - steal);
    }
  }
  const auto stat = read_file(fmt::format("/proc/{}/stat", keeper.pid));
  long user = 0, system = 0;
  std::sscanf(stat->c_str() + stat->rfind(')') + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %ld %ld",
              &user, &system);
  std::printf("keeper after: %s; %.0f us CPU of its own per task\n", memory_of(keeper.pid).c_str(),
              1e6 * static_cast<double>(user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK)) /
                  (2.0 * count * rounds));
  out.clear();
  append_frame(out, ToKeeper(QuitRequest{}));
  send_all(keeper, out);
  int status = 0;
  ::waitpid(keeper.pid, &status, 0);
  return WEXITSTATUS(status);
}
