// The history of metrics: pages of it, and fewer points for charts.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/crc32c.h"
#include "base/encoding.h"
#include "compat/mlflow/routes.h"
#include "track/runs.h"
#include "track/view.h"

namespace slipway::mlflow {
namespace {

using track::Point;
using RunPoints = std::vector<std::pair<std::string, std::vector<Point>>>;

constexpr std::size_t history_page_max = 25'000;
constexpr std::size_t interval_points_max = 2'500;
constexpr std::size_t interval_runs_max = 100;

bool by_time(const Point& a, const Point& b) {
  if (a.timestamp != b.timestamp) return a.timestamp < b.timestamp;
  return track::is_before(a, b);
}

Result<track::Series> series_of(const track::State& state, const Asked& asked, const std::string& run,
                                const std::string& key) {
  return find_run(state, asked.caller.workspace, run).map([&](const track::Run* found) {
    return state.series(*found, key);
  });
}

std::string token_of(const Point& point, std::uint32_t query) {
  track::ByteWriter out;
  out.fixed32(query);
  put_point(out, point);
  return format_base64url(out.take());
}

std::optional<Point> point_of_token(const std::string& token, std::uint32_t query) {
  const auto bytes = parse_base64url(token);
  if (!bytes) return std::nullopt;
  track::ByteReader in(*bytes);
  const bool is_ours = in.fixed32() == query;
  const Point point = track::get_point(in);
  if (!is_ours || in.failed() || !in.at_end()) return std::nullopt;
  return point;
}

Result<SeriesAsked> history(const track::State& state, Asked& asked) {
  Input& input = asked.input;
  const std::string run = input.text("run_id") ? input.required("run_id") : input.required("run_uuid");
  const std::string key = input.required("metric_key");
  const std::size_t limit =
      std::min(input.count("max_results", history_page_max, 1u << 30), history_page_max);
  const std::string token = input.text_or("page_token", "");
  if (input.problem()) return fail(*input.problem());
  const std::string about = run + "\n" + key;
  const std::uint32_t query = crc32c(about.data(), about.size());
  std::optional<Point> after;
  if (!token.empty()) {
    after = point_of_token(token, query);
    if (!after)
      return fail(ErrorCode::invalid, "the page token is not good here: it belongs to another history",
                  "pass next_page_token of the page before");
  }
  auto series = series_of(state, asked, run, key);
  if (!series) return fail(series.error());
  SeriesAsked wanted;
  wanted.series.emplace_back(run, std::move(*series));
  wanted.render = [limit, after, key, query](RunPoints all) -> Result<std::string> {
    std::vector<Point>& points = all[0].second;
    if (!std::is_sorted(points.begin(), points.end(), by_time))
      std::sort(points.begin(), points.end(), by_time);
    auto from = after ? std::upper_bound(points.begin(), points.end(), *after, by_time) : points.begin();
    const auto left = static_cast<std::size_t>(points.end() - from);
    const auto to = from + static_cast<std::ptrdiff_t>(std::min(limit, left));
    Json json;
    json.begin();
    if (from != to) {
      json.key("metrics").begin_list();
      for (auto point = from; point != to; ++point) put_metric(json, key, *point);
      json.end_list();
    }
    if (to != points.end()) json.field("next_page_token", token_of(*std::prev(to), query));
    return json.end().take();
  };
  return wanted;
}

// Which of a run's points are asked for: between two steps.
struct Steps {
  std::int64_t first = INT64_MIN, last = INT64_MAX;
};

Result<SeriesAsked> interval(const track::State& state, Asked& asked) {
  Input& input = asked.input;
  const auto runs = input.texts("run_ids");
  const std::string key = input.required("metric_key");
  const std::size_t limit = input.count("max_results", 320, interval_points_max);
  const auto first = input.integer("start_step");
  const auto last = input.integer("end_step");
  if (runs.empty()) input.refuse("Missing value for required parameter 'run_ids'.");
  if (runs.size() > interval_runs_max)
    input.refuse(fmt::format("{} runs at once; at most {} are allowed", runs.size(), interval_runs_max));
  if (first.has_value() != last.has_value())
    input.refuse("start_step and end_step are given both, or none of them");
  if (first && last && *first > *last) input.refuse("end_step is less than start_step");
  if (input.problem()) return fail(*input.problem());
  SeriesAsked wanted;
  for (const std::string& run : runs) {
    auto series = series_of(state, asked, run, key);
    if (!series) return fail(series.error());
    wanted.series.emplace_back(run, std::move(*series));
  }
  const Steps steps{first.value_or(INT64_MIN), last.value_or(INT64_MAX)};
  wanted.render = [limit, key, steps](const RunPoints& all) -> Result<std::string> {
    Json json;
    json.begin().key("metrics").begin_list();
    for (const auto& [run, points] : all) {
      const auto from = std::find_if(points.begin(), points.end(),
                                     [&](const Point& point) { return point.step >= steps.first; });
      const auto to =
          std::find_if(from, points.end(), [&](const Point& point) { return point.step > steps.last; });
      for (const std::size_t row : track::sampled_rows(static_cast<std::size_t>(to - from), limit))
        put_metric(json, key, from[static_cast<std::ptrdiff_t>(row)], run);
    }
    return json.end_list().end().take();
  };
  return wanted;
}

Result<SeriesAsked> bulk(const track::State& state, Asked& asked) {
  Input& input = asked.input;
  auto runs = input.texts("run_id");
  const std::string key = input.required("metric_key");
  const std::size_t limit = input.count("max_results", history_page_max, history_page_max);
  if (runs.empty()) input.refuse("Missing value for required parameter 'run_id'.");
  if (runs.size() > interval_runs_max)
    input.refuse(fmt::format("{} runs at once; at most {} are allowed", runs.size(), interval_runs_max));
  if (input.problem()) return fail(*input.problem());
  std::sort(runs.begin(), runs.end());
  SeriesAsked wanted;
  for (const std::string& run : runs) {
    auto series = series_of(state, asked, run, key);
    if (!series) return fail(series.error());
    wanted.series.emplace_back(run, std::move(*series));
  }
  wanted.render = [limit, key](RunPoints all) -> Result<std::string> {
    Json json;
    json.begin().key("metrics").begin_list();
    std::size_t left = limit;
    for (auto& [run, points] : all) {
      std::sort(points.begin(), points.end(), by_time);
      for (std::size_t i = 0; i < points.size() && left > 0; ++i, --left)
        put_metric(json, key, points[i], run);
    }
    return json.end_list().end().take();
  };
  return wanted;
}

}  // namespace

void add_series_routes(ApiRoutes& routes) {
  routes.insert(routes.end(),
                {
                    {"GET", "/metrics/get-history", {Object::run, Verb::read}, history},
                    {"GET", "/metrics/get-history-bulk-interval", {Object::run, Verb::read}, interval},
                    {"GET", "/metrics/get-history-bulk", {Object::run, Verb::read}, bulk},
                });
}

}  // namespace slipway::mlflow
