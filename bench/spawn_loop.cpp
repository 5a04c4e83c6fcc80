// The limit a task system is held against: posix_spawn and waitpid of a program, N at a time, nothing else.
//
//   spawn_loop COUNT AT_A_TIME PROGRAM [ARGUMENT…]      prints seconds, and CPU seconds with those of the
//   children
#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

double cpu_seconds(int who) {
  rusage used{};
  ::getrusage(who, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: %s COUNT AT_A_TIME PROGRAM [ARGUMENT...]\n", argv[0]);
    return 2;
  }
  std::atomic<long> left = std::strtol(argv[1], nullptr, 10);
  const long at_a_time = std::strtol(argv[2], nullptr, 10);
  std::atomic<long> failed = 0;
  const auto begin = std::chrono::steady_clock::now();
  {
    std::vector<std::jthread> threads;
    for (long i = 0; i < at_a_time; ++i)
      threads.emplace_back([&] {
        while (left.fetch_sub(1) > 0) {
          pid_t pid = 0;
          int status = 1;
          if (::posix_spawnp(&pid, argv[3], nullptr, nullptr, argv + 3, environ) != 0 ||
              ::waitpid(pid, &status, 0) != pid || status != 0)
            ++failed;
        }
      });
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::printf("%.6f %.6f\n", took.count(), cpu_seconds(RUSAGE_SELF) + cpu_seconds(RUSAGE_CHILDREN));
  if (failed > 0) std::fprintf(stderr, "%ld of them failed\n", failed.load());
  return failed > 0 ? 1 : 0;
}
