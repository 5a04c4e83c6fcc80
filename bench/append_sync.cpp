// The limit a durable answer is held against: append a record to a file and fdatasync it.
//
//   append_sync FILE SIZE      for each line on stdin, appends one record; prints the microseconds it took
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s FILE SIZE\n", argv[0]);
    return 2;
  }
  const int file = ::open(argv[1], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0) {
    std::perror(argv[1]);
    return 1;
  }
  const std::string record(std::strtoul(argv[2], nullptr, 10), 'x');
  for (int c = 0; (c = std::getchar()) != EOF;) {
    if (c != '\n') continue;
    const auto begin = std::chrono::steady_clock::now();
    if (::write(file, record.data(), record.size()) != static_cast<ssize_t>(record.size()) ||
        ::fdatasync(file) != 0) {
      std::perror(argv[1]);
      return 1;
    }
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
    std::printf("%.1f\n", took.count());
    std::fflush(stdout);
  }
  return 0;
}
