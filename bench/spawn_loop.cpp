// The limit a task system is held against: posix_spawn and waitpid of a program, N at a time, nothing else.
//
//   spawn_loop COUNT AT_A_TIME PROGRAM [ARGUMENT…]      prints the seconds it took
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

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
  std::printf("%.6f\n", std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  if (failed > 0) std::fprintf(stderr, "%ld of them failed\n", failed.load());
  return failed > 0 ? 1 : 0;
}
