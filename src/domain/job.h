#pragma once
// What a user submits: a job and its tasks, as written, after checking.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/quantity.h"
#include "base/result.h"
#include "domain/ids.h"

namespace slipway {

// Thousandths of a core, so that half a core can be asked for and sums stay exact.
using Millicores = std::uint32_t;

struct Resources {
  Millicores cores = 0;
  Bytes memory = 0;
  std::uint32_t gpus = 0;
  friend auto operator<=>(const Resources&, const Resources&) = default;
};
constexpr Resources operator*(const Resources& one, std::uint32_t times) {
  return {one.cores * times, one.memory * times, one.gpus * times};
}
constexpr Resources operator+(const Resources& a, const Resources& b) {
  return {a.cores + b.cores, a.memory + b.memory, a.gpus + b.gpus};
}
constexpr Resources operator-(const Resources& a, const Resources& b) {  // the caller knows that b fits
  return {a.cores - b.cores, a.memory - b.memory, a.gpus - b.gpus};
}
constexpr bool fits(const Resources& need, const Resources& room) {
  return need.cores <= room.cores && need.memory <= room.memory && need.gpus <= room.gpus;
}
std::string describe(const Resources& resources);  // "2 cores, 1 GiB, 1 GPU"

using Environment = std::map<std::string, std::string>;

// A string runs under /bin/sh -c; a list runs as it is.
using Command = std::variant<std::string, std::vector<std::string>>;

struct TaskSpec {
  std::string name;
  Command command;
  std::optional<std::uint32_t> count;  // an array: tasks name[0] … name[count-1]
  std::uint32_t nodes = 1;
  std::uint32_t processes_per_node = 1;
  Resources resources{.cores = 1000};  // per process; memory 0: no limit
  std::vector<std::string> depends_on;
  Environment environment;  // joined over the job's
  std::uint32_t retries = 0;
  Duration max_wall_time{0};  // 0: none
  Duration stop_grace{5'000'000};
  std::string workdir;  // run in this folder of the node instead of a fresh one
  friend bool operator==(const TaskSpec&, const TaskSpec&) = default;

  std::uint32_t tasks() const { return count.value_or(1); }
  std::uint32_t processes() const { return nodes * processes_per_node; }
  Resources per_node() const { return resources * processes_per_node; }
};

struct JobSpec {
  std::string name;
  std::string pool;  // empty: the only pool
  int priority = 0;  // -1000 … 1000, higher first
  Environment environment;
  std::string source;           // SHA-256 of a snapshot's manifest; empty: none
  std::vector<TaskSpec> tasks;  // at least one
  friend bool operator==(const JobSpec&, const JobSpec&) = default;
};

struct JobLimits {
  static constexpr std::size_t name_length_max = 128;
  static constexpr std::uint32_t tasks_max = 10'000'000;  // of one array
  static constexpr std::size_t entries_max = 200'000;     // of the list of tasks
  static constexpr std::uint32_t nodes_max = 100'000;
  static constexpr std::uint32_t retries_max = 1'000;
};

// What can be said of a job without knowing any pool: names, counts, dependencies and their cycles.
Result<void> validate(const JobSpec& spec);

// Letters, digits, '-', '_' and '.', 1 to 128 of them, beginning with a letter or digit. `kind` is for the
// message.
Result<void> validate_name(std::string_view kind, std::string_view name);

}  // namespace slipway
