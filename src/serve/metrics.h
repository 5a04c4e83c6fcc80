#pragma once
// Counters and histograms by TensorFlow Serving's names, and how Prometheus reads them. Thread-safe.
#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "serve/failure.h"

namespace slipway::serve {

// Buckets up to 10 * 1.8^i microseconds for i below 33.
class Histogram {
 public:
  static constexpr std::size_t bounds = 33;
  void add(double value);
  // `labels` without braces: model_name="m"
  void append(std::string& to, const std::string& name, const std::string& labels) const;

 private:
  std::array<std::uint64_t, bounds + 1> counts_{};
  std::uint64_t count_ = 0;
  double sum_ = 0;
};

struct RequestFigures {
  std::string model;
  std::string api;         // predict by REST, Predict by gRPC
  std::string entrypoint;  // REST
  Code code = Code::ok;
  double latency_us = 0;
};

class Metrics {
 public:
  void count_request(const RequestFigures& request);
  void count_run(const std::string& model, const std::string& api, double runtime_us, std::int64_t rows);
  void count_batch(const std::string& model, double waited_us, std::int64_t rows, std::int64_t padded);
  std::string text() const;  // Prometheus' text format

 private:
  using Histograms = std::map<std::string, Histogram>;  // by labels
  using Counters = std::map<std::string, std::uint64_t>;
  mutable std::mutex mutex_;
  Counters requests_, examples_;                                          // guarded by mutex_
  Histograms latency_, runtime_, example_counts_;                         // guarded by mutex_
  Histograms queuing_latency_, input_batch_, processed_batch_, padding_;  // guarded by mutex_
};

}  // namespace slipway::serve
