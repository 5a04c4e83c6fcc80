#pragma once
// What may be logged: lengths, characters and numbers, as MLflow's server checks them. Each function says
// what is wrong, where and what is allowed. Pure.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "track/values.h"

namespace slipway::track {

constexpr std::size_t key_max = 250;  // characters, as everywhere here
constexpr std::size_t param_value_max = 6'000;
constexpr std::size_t run_tag_value_max = 8'000;
constexpr std::size_t experiment_name_max = 500;
constexpr std::size_t experiment_tag_value_max = 20'000;
constexpr std::size_t registry_tag_value_max = 100'000;
constexpr std::size_t alias_max = 255;
constexpr std::size_t batch_metrics_max = 1'000;
constexpr std::size_t batch_params_max = 100;
constexpr std::size_t batch_tags_max = 100;
constexpr std::size_t batch_max = 1'000;              // all of them together
constexpr std::size_t run_keys_max = 200'000;         // of one kind, in one run: they are kept in memory
constexpr std::size_t logged_model_params_max = 100;  // in one request

// `what` begins the message: "metric key", "tag key".
Result<void> check_key(std::string_view what, std::string_view key);
Result<void> check_run_id(std::string_view id);
Result<void> check_experiment_id(std::string_view id);
Result<void> check_experiment_name(std::string_view name);
Result<void> check_model_name(std::string_view name);
Result<void> check_alias(std::string_view alias);
Result<void> check_point(std::string_view key, const Point& point);
Result<void> check_artifact_location(std::string_view location);
Result<void> check_length(std::string_view what, std::string_view text, std::size_t characters_max);
struct BatchSize {
  std::size_t metrics = 0, params = 0, tags = 0;
};
Result<void> check_batch(BatchSize size);

// A relative path of an artifact, decoded as often as it is encoded: no way out of its folder, no character
// that another system takes for a separator. What is given back is the path to use; empty: the folder itself.
Result<std::string> safe_artifact_path(std::string_view path);

// The first `characters_max` characters of a text that is longer, never half of one.
std::string cut_to(std::string_view text, std::size_t characters_max);

}  // namespace slipway::track
