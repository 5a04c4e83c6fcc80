#pragma once
// The output of a run: a live line on a terminal, plain lines elsewhere, JSON lines for programs;
// metrics.jsonl and TensorBoard files beside. Only the chief writes.
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "train/nn/layer.h"
#include "train/state/events.h"

namespace slipway::train {

struct ProgressOptions {
  bool json = false;
  bool terminal = false;          // a person is watching: redraw one line
  std::string output;             // folder for metrics.jsonl; may be empty
  std::string log_dir;            // folder for event files; may be empty
  std::uint64_t steps_total = 0;  // 0: nobody knows
  std::uint64_t steps_per_epoch = 1;
  std::uint64_t first_step = 0;
};

class Progress {
 public:
  static Result<std::unique_ptr<Progress>> open(ProgressOptions options, const Clock& clock, std::FILE* out);

  // One finished step: sums over its samples. Reports when that is due.
  void step(std::uint64_t step, double loss, double correct, double samples);
  // After a test-set evaluation.
  void evaluated(std::uint64_t step, double accuracy, double loss);
  void histograms(std::uint64_t step, const std::vector<Parameter>& parameters, std::span<const float> plain);
  void hyperparameters(const std::map<std::string, HyperValue>& values);
  // A sentence for people; as an event with that name for programs.
  void report_event(const std::string& event, const std::string& sentence,
                    const std::map<std::string, HyperValue>& fields = {});

  double samples_per_second() const;  // over the whole run, evaluation not counted
  double seconds() const;             // of training so far
  // Evaluation and saving between pause and go_on do not count as training.
  void pause();
  void go_on();

 private:
  Progress(ProgressOptions options, const Clock& clock, std::FILE* out);
  void report(std::uint64_t step);
  void write_line(const std::string& text);
  void clear_live_line();
  void record(const std::map<std::string, HyperValue>& fields);
  double wall() const;

  ProgressOptions options_;
  const Clock& clock_;
  std::FILE* out_;
  Fd metrics_;
  std::optional<EventFile> events_;
  double loss_ = 0, correct_ = 0, samples_ = 0;  // since the last report
  double samples_all_ = 0, trained_ = 0;         // trained_: seconds before `since_`
  std::optional<TimePoint> since_;
  double reported_trained_ = 0;
  bool live_ = false;
  double test_accuracy_ = -1;
};

std::string to_json(const std::map<std::string, HyperValue>& fields);

}  // namespace slipway::train
