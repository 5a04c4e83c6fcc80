#include "serve/metrics.h"

#include <fmt/format.h>

#include <algorithm>

namespace slipway::serve {
namespace {

std::string escape_label(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\n')
      out += "\\n";
    else if (c == '"' || c == '\\')
      out.append({'\\', c});
    else
      out += c;
  }
  return out;
}

const std::array<double, Histogram::bounds>& bucket_bounds() {
  static const auto all = [] {
    std::array<double, Histogram::bounds> made{};
    double bound = 10;
    for (double& to : made) {
      to = bound;
      bound *= 1.8;
    }
    return made;
  }();
  return all;
}

}  // namespace

void Histogram::add(double value) {
  const auto& all = bucket_bounds();
  ++counts_[static_cast<std::size_t>(std::lower_bound(all.begin(), all.end(), value) - all.begin())];
  ++count_;
  sum_ += value;
}

void Histogram::append(std::string& to, const std::string& name, const std::string& labels) const {
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < bounds; ++i) {
    below += counts_[i];
    to += fmt::format("{}_bucket{{{},le=\"{:g}\"}} {}\n", name, labels, bucket_bounds()[i], below);
  }
  to += fmt::format("{}_bucket{{{},le=\"+Inf\"}} {}\n", name, labels, count_);
  to += fmt::format("{}_sum{{{}}} {}\n{}_count{{{}}} {}\n", name, labels, sum_, name, labels, count_);
}

void Metrics::count_request(const RequestFigures& request) {
  const std::string model = escape_label(request.model);
  const std::lock_guard lock(mutex_);
  ++requests_[fmt::format("model_name=\"{}\",status=\"{}\"", model, to_string(request.code))];
  if (request.code == Code::ok)
    latency_[fmt::format("model_name=\"{}\",API=\"{}\",entrypoint=\"{}\"", model, request.api,
                         request.entrypoint)]
        .add(request.latency_us);
}

void Metrics::count_run(const std::string& name, const std::string& api, double runtime_us,
                        std::int64_t rows) {
  const std::string model = escape_label(name);
  const std::lock_guard lock(mutex_);
  runtime_[fmt::format("model_name=\"{}\",API=\"{}\",runtime=\"native\"", model, api)].add(runtime_us);
  const std::string labels = fmt::format("model=\"{}\"", model);
  example_counts_[labels].add(static_cast<double>(rows));
  examples_[labels] += static_cast<std::uint64_t>(rows);
}

void Metrics::count_batch(const std::string& name, double waited_us, std::int64_t rows, std::int64_t padded) {
  const std::string labels = fmt::format("model_name=\"{}\"", escape_label(name));
  const std::lock_guard lock(mutex_);
  queuing_latency_[labels].add(waited_us);
  input_batch_[labels].add(static_cast<double>(rows));
  processed_batch_[labels].add(static_cast<double>(rows + padded));
  padding_[labels].add(static_cast<double>(padded));
}

std::string Metrics::text() const {
  const std::lock_guard lock(mutex_);
  std::string to;
  const auto counters = [&](const char* name, const Counters& all) {
    if (!all.empty()) to += fmt::format("# TYPE {} counter\n", name);
    for (const auto& [labels, count] : all) to += fmt::format("{}{{{}}} {}\n", name, labels, count);
  };
  const auto histograms = [&](const char* name, const Histograms& all) {
    if (!all.empty()) to += fmt::format("# TYPE {} histogram\n", name);
    for (const auto& [labels, histogram] : all) histogram.append(to, name, labels);
  };
  counters(":tensorflow:serving:request_count", requests_);
  histograms(":tensorflow:serving:request_latency", latency_);
  histograms(":tensorflow:serving:runtime_latency", runtime_);
  histograms(":tensorflow:serving:request_example_counts", example_counts_);
  counters(":tensorflow:serving:request_example_count_total", examples_);
  histograms(":tensorflow:serving:batching_session:queuing_latency", queuing_latency_);
  histograms(":tensorflow:serving:batching_session:input_batch_size", input_batch_);
  histograms(":tensorflow:serving:batching_session:processed_batch_size", processed_batch_);
  histograms(":tensorflow:serving:batching_session:padding_size", padding_);
  return to;
}

}  // namespace slipway::serve
