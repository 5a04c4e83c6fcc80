#pragma once
// TensorBoard event files: scalars, histograms, and the run's parameters for its HPARAMS tab.
//
// Records are written whole, one write() each, so that TensorBoard can follow a run. A resumed run opens a
// new file whose first step makes TensorBoard drop what a killed attempt had written beyond it.
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/file.h"
#include "base/result.h"

namespace slipway::train {

// One framed record around a serialized Event.
std::string event_record(std::string_view event);

// Rows (left, right, count) over `buckets` equal parts between least and largest.
struct HistogramRow {
  double left, right, count;
};
std::vector<HistogramRow> histogram(std::span<const float> values, int buckets = 30);

using HyperValue = std::variant<double, std::string, bool>;

class EventFile {
 public:
  // Creates `folder`/events.out.tfevents.<seconds>.<host>.<pid>.0.
  static Result<EventFile> create(const std::string& folder, double wall_time);

  Result<void> scalar(double wall_time, std::uint64_t step, std::string_view tag, float value);
  Result<void> histogram(double wall_time, std::uint64_t step, std::string_view tag,
                         std::span<const float> values);
  Result<void> hyperparameters(double wall_time, const std::map<std::string, HyperValue>& values);
  Result<void> restarted_at(double wall_time, std::uint64_t step);
  const std::string& path() const { return path_; }

 private:
  EventFile(Fd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}
  Result<void> put(const std::string& event);
  Fd fd_;
  std::string path_;
};

}  // namespace slipway::train
