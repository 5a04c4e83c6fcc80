#include "wire/recording.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "wire/job_file.h"
#include "wire/json.h"
#include "wire/utf8.h"

namespace slipway::wire {
namespace {

// A line that does not fit; said with its number by whoever reads the lines.
struct Unfit {
  std::string what;
};

std::string text(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::optional<TimePoint> time(const Json& json, const char* key) {
  const std::string written = text(json, key);
  if (written.empty()) return std::nullopt;
  const auto parsed = parse_time(written);
  if (!parsed) throw Unfit{fmt::format("{} '{}' is not a time", key, to_utf8(written.substr(0, 50)))};
  return *parsed;
}

TimePoint time_needed(const Json& json, const char* key) {
  const auto found = time(json, key);
  if (!found) throw Unfit{fmt::format("{} is missing", key)};
  return *found;
}

std::uint64_t count(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found == json.end() || found->is_null() ? 0 : integer<std::uint32_t>(*found);
}

Resources resources(const Json& json, const char* cores, const char* memory, const char* gpus) {
  const double number = json.value(cores, 0.0);
  if (!(number >= 0 && number <= 100'000)) throw Unfit{fmt::format("{} is out of range", cores)};
  const auto found = json.find(memory);
  return {static_cast<Millicores>(std::lround(number * 1000)),
          found == json.end() || found->is_null() ? 0 : integer<Bytes>(*found),
          static_cast<std::uint32_t>(count(json, gpus))};
}

class Reader {
 public:
  void read(const Json& line) {
    if (!line.is_object()) throw Unfit{"it is no object"};
    const std::string kind = text(line, "kind");
    if (kind.empty()) throw Unfit{"it has no kind"};
    const auto found = line.find(kind);
    if (found == line.end()) return;
    if (!found->is_object()) throw Unfit{fmt::format("its {} is no object", to_utf8(kind))};
    if (kind == "pool") return read_pool(*found);
    if (kind == "node") return read_node(*found);
    if (kind == "event") return read_event(*found);
    if (kind == "job") return read_job(*found);
    if (kind == "attempt") return read_attempt(text(line, "job"), *found);
  }

  // What is known of each node at the end becomes what it was all the time.
  Recording finish() {
    for (NodeStay& stay : recording_.stays) {
      if (const auto node = nodes_.find(stay.node); node != nodes_.end()) {
        stay.total = node->second.total;
        stay.low_priority = node->second.low_priority;
      } else {
        for (const RecordedPool& pool : recording_.pools)
          if (pool.name == stay.pool) stay.total = pool.per_node;
      }
    }
    std::stable_sort(
        recording_.jobs.begin(), recording_.jobs.end(),
        [](const RecordedJob& a, const RecordedJob& b) { return a.submitted_at < b.submitted_at; });
    return std::move(recording_);
  }

 private:
  struct Node {
    Resources total;
    bool low_priority = false;
  };

  void read_pool(const Json& json) {
    RecordedPool& pool = recording_.pools.emplace_back();
    pool.name = text(json, "name");
    if (pool.name.empty()) throw Unfit{"the pool has no name"};
    pool.per_node = resources(json, "cores_per_node", "memory_per_node", "gpus_per_node");
    pool.fill = parse_fill(text(json, "fill")).value_or(Fill::pack);
    pool.slots_per_node = static_cast<std::uint32_t>(count(json, "slots_per_node"));
  }

  void read_node(const Json& json) {
    Node& node = nodes_[text(json, "name")];
    node.total = resources(json, "cores", "memory", "gpus");
    const auto low = json.find("low_priority");
    node.low_priority = low != json.end() && low->is_boolean() && low->get<bool>();
  }

  void read_event(const Json& json) {
    const std::string kind = text(json, "kind");
    const std::string node = text(json, "node");
    if (kind == "node.joined") {
      end_stay(node, json);
      recording_.stays.push_back(
          {node, text(json, "pool"), {}, false, time_needed(json, "time"), std::nullopt});
    } else if (kind == "node.lost" || kind == "node.gone") {
      end_stay(node, json);
    }
  }
  void end_stay(const std::string& node, const Json& json) {
    for (auto stay = recording_.stays.rbegin(); stay != recording_.stays.rend(); ++stay) {
      if (stay->node != node) continue;
      if (!stay->to) stay->to = time_needed(json, "time");
      return;
    }
  }

  void read_job(const Json& json) {
    RecordedJob job;
    job.id = text(json, "id");
    const auto spec = json.find("spec");
    if (job.id.empty() || spec == json.end()) throw Unfit{"the job has no id or no spec"};
    auto parsed = parse_job_spec(dump(*spec));
    if (!parsed) throw Unfit{fmt::format("the spec of {}: {}", to_utf8(job.id), parsed.error().what)};
    job.spec = std::move(*parsed);
    job.spec.pool = text(json, "pool");
    job.spec.name = text(json, "name");
    job.user = text(json, "submitted_by");
    const auto state = parse_job_state(text(json, "state"));
    if (!state) throw Unfit{fmt::format("the state of {} is unknown", to_utf8(job.id))};
    job.state = *state;
    job.submitted_at = time_needed(json, "submitted_at");
    job.ended_at = time(json, "ended_at");
    if (const auto counts = json.find("tasks"); counts != json.end() && counts->is_object())
      job.counts = {count(*counts, "waiting"),   count(*counts, "queued"), count(*counts, "active"),
                    count(*counts, "succeeded"), count(*counts, "failed"), count(*counts, "cancelled"),
                    count(*counts, "skipped")};
    places_[job.id] = recording_.jobs.size();
    recording_.jobs.push_back(std::move(job));
  }

  void read_attempt(const std::string& id, const Json& json) {
    const auto place = places_.find(id);
    if (place == places_.end())
      throw Unfit{fmt::format("an attempt of job '{}', which was not named before", to_utf8(id))};
    RecordedJob& job = recording_.jobs[place->second];
    const TaskName name = parse_task_name(text(json, "task"));
    RecordedAttempt attempt;
    if (groups_of_ != id) {
      groups_.clear();
      for (std::uint32_t g = 0; g < job.spec.tasks.size(); ++g) groups_[job.spec.tasks[g].name] = g;
      groups_of_ = id;
    }
    const auto group = groups_.find(name.group);
    attempt.index = name.index.value_or(0);
    if (group != groups_.end()) attempt.group = group->second;
    if (group == groups_.end() || attempt.index >= job.spec.tasks[attempt.group].tasks())
      throw Unfit{fmt::format("{} has no task '{}'", to_utf8(id), to_utf8(text(json, "task")))};
    attempt.number = static_cast<std::uint32_t>(count(json, "attempt"));
    if (const auto nodes = json.find("nodes"); nodes != json.end() && nodes->is_array())
      attempt.nodes = static_cast<std::uint32_t>(std::max<std::size_t>(1, nodes->size()));
    attempt.placed_at = time_needed(json, "placed_at");
    attempt.started_at = time(json, "started_at");
    attempt.ended_at = time(json, "ended_at");
    attempt.end = parse_end_reason(text(json, "end"));
    const auto code = json.find("exit_code");
    attempt.exit_code = code != json.end() && code->is_number_integer() ? integer<int>(*code) : 1;
    job.attempts.push_back(attempt);
  }

  Recording recording_;
  std::map<std::string, Node> nodes_;
  std::map<std::string, std::size_t> places_;  // of jobs, by id
  std::string groups_of_;                      // the job whose tasks `groups_` places
  std::map<std::string, std::uint32_t> groups_;
};

}  // namespace

Result<Recording> parse_recording(std::string_view lines, std::string_view name) {
  Reader reader;
  std::size_t number = 0;
  while (!lines.empty()) {
    ++number;
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    const std::string_view line = lines.substr(0, end);
    lines.remove_prefix(std::min(end + 1, lines.size()));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const auto wrong = [&](const std::string& what) {
      return fail(ErrorCode::invalid, fmt::format("{} line {}: {}", name, number, what),
                  "make the file anew with slipway events --export");
    };
    try {
      // The depth is bounded before anything is built: nlohmann recurses when it takes a tree apart.
      const Json json = Json::parse(line, [](int depth, Json::parse_event_t, Json&) {
        if (depth > 64) throw Unfit{"it is nested too deep"};
        return true;
      });
      reader.read(json);
    } catch (const Json::exception& error) {
      return wrong(to_utf8(error.what()));
    } catch (const Unfit& unfit) {
      return wrong(unfit.what);
    }
  }
  return reader.finish();
}

}  // namespace slipway::wire
