#pragma once
// Experiments, runs, metrics, models and their versions: what is tracked, as values.
//
// Times are milliseconds since 1970. Ids are texts: clients choose none of them, and read none.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace slipway::track {

using Millis = std::int64_t;

enum class Lifecycle : std::uint8_t { active = 1, deleted = 2 };
std::string_view to_string(Lifecycle lifecycle);

enum class RunStatus : std::uint8_t { running = 1, scheduled = 2, finished = 3, failed = 4, killed = 5 };
std::string_view to_string(RunStatus status);  // RUNNING, …
std::optional<RunStatus> parse_run_status(std::string_view text);
// Whether a run with it has ended.
constexpr bool is_ended(RunStatus status) { return status >= RunStatus::finished; }

struct Pair {  // a parameter or a tag
  std::string key;
  std::string value;
  friend bool operator==(const Pair&, const Pair&) = default;
};

struct Point {  // of a metric
  std::int64_t step = 0;
  Millis timestamp = 0;
  double value = 0;
};
// The same point logged twice is one. NaN is like NaN.
bool same_point(const Point& a, const Point& b);
// Whether `b` takes the place of `a` as the latest: by step, then timestamp, then value.
bool is_later(const Point& a, const Point& b);

struct Metric {
  std::string key;
  Point point;
};

struct Experiment {
  std::string id;
  std::string name;
  std::string artifact_location;
  std::string user;  // who made it
  Lifecycle lifecycle = Lifecycle::active;
  Millis created_at = 0;
  Millis updated_at = 0;
  std::vector<Pair> tags;  // by key
};

struct RunInfo {  // what a run is, without what was logged to it
  std::string id;
  std::string experiment;
  std::string name;
  std::string user;
  std::string artifact_uri;
  RunStatus status = RunStatus::running;
  Lifecycle lifecycle = Lifecycle::active;
  Millis started_at = 0;
  std::optional<Millis> ended_at;
};

struct DatasetInput {  // what a run was trained on
  std::string name, digest, source_type, source, schema, profile;
  std::vector<Pair> tags;
};

struct ModelOutput {  // a logged model that a run made
  std::string model;
  std::int64_t step = 0;
};

struct Alias {
  std::string alias;
  std::uint32_t version = 0;
};

struct Model {  // a registered model: a name under which versions are kept
  std::string name;
  std::string description;
  std::string user;
  Millis created_at = 0;
  Millis updated_at = 0;
  std::uint32_t version_last = 0;  // numbers of deleted versions are not given again
  std::vector<Pair> tags;          // by key
  std::vector<Alias> aliases;      // by alias
};

struct ModelVersion {
  std::string model;
  std::uint32_t number = 0;
  std::string description;
  std::string user;
  std::string stage = "None";
  std::string source;    // as it was given
  std::string location;  // what it stands for, where the files are
  std::string run;       // empty: of none
  std::string run_link;
  std::string logged_model;  // empty: of none
  Millis created_at = 0;
  Millis updated_at = 0;
  std::vector<Pair> tags;  // by key
};

enum class LoggedModelStatus : std::uint8_t { pending = 1, ready = 2, failed = 3 };
std::string_view to_string(LoggedModelStatus status);  // LOGGED_MODEL_READY, …
std::optional<LoggedModelStatus> parse_logged_model_status(std::string_view text);

struct LoggedModelMetric {
  Metric metric;
  std::string run;
  std::string dataset_name, dataset_digest;
};

struct LoggedModel {  // a model as a run saved it, before it is registered
  std::string id;
  std::string experiment;
  std::string name;
  std::string type;
  std::string run;
  std::string artifact_uri;
  LoggedModelStatus status = LoggedModelStatus::pending;
  Lifecycle lifecycle = Lifecycle::active;
  Millis created_at = 0;
  Millis updated_at = 0;
  std::vector<Pair> params;
  std::vector<Pair> tags;  // by key
  std::vector<LoggedModelMetric> metrics;
};

// In a list that is kept by key.
const Pair* find_pair(const std::vector<Pair>& pairs, std::string_view key);
void put_pair(std::vector<Pair>& pairs, std::string key, std::string value);
bool erase_pair(std::vector<Pair>& pairs, std::string_view key);

}  // namespace slipway::track
