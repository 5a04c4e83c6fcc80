// Runs a fuzz target without libFuzzer, so that every `make test` tries it a little with any compiler: each
// file of a folder, one input of 1 MiB made of the largest of them, then a fixed number of seeded changes.
//
//   fuzz_job_file CORPUS [--runs N] [--seed N]      fuzz_job_file FILE
//
// An input that stops the process is left in crash-<program> in the working folder, and its name is printed.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/random.h"
#include "mutate.h"
#include "target.h"

// There with a sanitizer, which ends the process without a signal.
extern "C" void __sanitizer_set_death_callback(void (*callback)()) __attribute__((weak));

namespace {

std::string current;     // the input being tried, for the handler
std::string crash_file;  // its name, made before anything can go wrong

constexpr std::size_t large_input = 1 << 20;

void save_current() {  // only calls that a signal handler may make
  const int file = ::open(crash_file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0 || ::write(file, current.data(), current.size()) < 0) return;
  ::close(file);
  const char said[] = "the input that did it is in ";
  (void)!::write(2, said, sizeof said - 1);
  (void)!::write(2, crash_file.data(), crash_file.size());
  (void)!::write(2, "\n", 1);
}

void on_signal(int number) {
  save_current();
  ::signal(number, SIG_DFL);
  ::raise(number);
}

void try_one(std::string input) {
  current = std::move(input);
  // An allocation of exactly its size, so that a sanitizer sees a read past the end.
  const std::vector<std::uint8_t> bytes(current.begin(), current.end());
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// As much as a body or a message may have: what takes quadratic time is seen here.
std::string large_of(const std::vector<std::string>& corpus) {
  const auto by_size = [](const std::string& one, const std::string& other) {
    return one.size() < other.size();
  };
  const std::string& largest = *std::max_element(corpus.begin(), corpus.end(), by_size);
  std::string large;
  large.reserve(large_input);
  while (large.size() < large_input) large += largest.empty() ? "0" : largest;
  large.resize(large_input);
  return large;
}

}  // namespace

int main(int argc, char** argv) {
  namespace fs = std::filesystem;
  long runs = 20'000;
  std::uint64_t seed = 1;
  for (int i = 2; i + 1 < argc; i += 2) {
    const std::string option = argv[i];
    if (option == "--runs") runs = std::strtol(argv[i + 1], nullptr, 10);
    if (option == "--seed") seed = std::strtoull(argv[i + 1], nullptr, 10);
  }
  if (argc < 2 || !fs::exists(argv[1])) {
    std::fprintf(stderr, "usage: %s CORPUS [--runs N] [--seed N]\n", argv[0]);
    return 2;
  }
  crash_file = (fs::current_path() / ("crash-" + fs::path(argv[0]).filename().string())).string();
  for (const int number : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) ::signal(number, on_signal);
  if (__sanitizer_set_death_callback) __sanitizer_set_death_callback(save_current);

  if (!fs::is_directory(argv[1])) {
    try_one(read(argv[1]));
    return 0;
  }
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(argv[1])) files.push_back(entry.path());
  std::sort(files.begin(), files.end());  // the order of a folder is chance
  std::vector<std::string> corpus{std::string()};
  for (const fs::path& file : files) corpus.push_back(read(file));
  for (const std::string& input : corpus) try_one(input);
  try_one(large_of(corpus));
  slipway::Random random(seed);
  for (long run = 0; run < runs; ++run) try_one(slipway::fuzz::mutate(corpus, random));
  std::printf("%zu files, %ld changes of them, seed %llu\n", files.size(), runs,
              static_cast<unsigned long long>(seed));
  return 0;
}
