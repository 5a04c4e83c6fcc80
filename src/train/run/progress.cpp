#include "train/run/progress.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <cmath>

#include "base/file.h"
#include "base/log.h"
#include "base/quantity.h"

namespace slipway::train {
namespace {

constexpr double live_seconds = 0.1;   // how often a terminal's line is drawn
constexpr double plain_seconds = 1.0;  // and how often a line is added elsewhere

std::string with_thousands(double value) {
  std::string text = fmt::format("{:.0f}", value);
  for (std::size_t at = text.size(); at > 3;) text.insert(at -= 3, ",");
  return text;
}

void append_json_string(std::string& to, std::string_view text) {
  to += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\')
      to += '\\', to += c;
    else if (static_cast<unsigned char>(c) < 0x20)
      to += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else
      to += c;
  }
  to += '"';
}

}  // namespace

std::string to_json(const std::map<std::string, HyperValue>& fields) {
  std::string text = "{";
  for (const auto& [name, value] : fields) {
    if (text.size() > 1) text += ',';
    append_json_string(text, name);
    text += ':';
    if (const auto* number = std::get_if<double>(&value))
      text += std::isfinite(*number) ? fmt::format("{}", *number) : "null";
    if (const auto* word = std::get_if<std::string>(&value)) append_json_string(text, *word);
    if (const auto* flag = std::get_if<bool>(&value)) text += *flag ? "true" : "false";
  }
  return text + "}";
}

Progress::Progress(ProgressOptions options, const Clock& clock, std::FILE* out)
    : options_(std::move(options)), clock_(clock), out_(out) {}

Result<std::unique_ptr<Progress>> Progress::open(ProgressOptions options, const Clock& clock,
                                                 std::FILE* out) {
  std::unique_ptr<Progress> progress(new Progress(std::move(options), clock, out));
  const ProgressOptions& o = progress->options_;
  if (!o.output.empty()) {
    if (auto made = make_folders(o.output); !made) return fail(made.error());
    const std::string path = o.output + "/metrics.jsonl";
    progress->metrics_ = Fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
    if (!progress->metrics_) return fail(system_error("cannot open " + path, errno));
  }
  if (!o.log_dir.empty()) {
    auto events = EventFile::create(o.log_dir, progress->wall());
    if (!events) return fail(events.error());
    progress->events_.emplace(std::move(*events));
    if (o.first_step > 0)
      if (auto written = progress->events_->restarted_at(progress->wall(), o.first_step); !written)
        return fail(written.error());
  }
  return progress;
}

double Progress::wall() const { return slipway::seconds(clock_.now().time_since_epoch()); }

double Progress::seconds() const {
  return trained_ + (since_ ? slipway::seconds(clock_.now() - *since_) : 0);
}

double Progress::samples_per_second() const {
  const double took = seconds();
  return took > 0 ? samples_all_ / took : 0;
}

void Progress::pause() {
  if (!since_) return;
  trained_ += slipway::seconds(clock_.now() - *since_);
  since_.reset();
}
void Progress::go_on() {
  if (!since_) since_ = clock_.now();
}

void Progress::step(std::uint64_t step, double loss, double correct, double samples) {
  loss_ += loss;
  correct_ += correct;
  samples_ += samples;
  samples_all_ += samples;
  // A look at the clock costs less than a step, but a step may cost only a tenth of a millisecond.
  if (step % 16 != 0) return;
  if (seconds() - reported_trained_ >= (options_.terminal ? live_seconds : plain_seconds)) report(step);
}

void Progress::report(std::uint64_t step) {
  const double now = seconds(), took = now - reported_trained_;
  if (samples_ <= 0) return;
  const double loss = loss_ / samples_, accuracy = correct_ / samples_, rate = took > 0 ? samples_ / took : 0;
  const double done = static_cast<double>(step - options_.first_step);
  const double left = done > 0 && options_.steps_total > step
                          ? now / done * static_cast<double>(options_.steps_total - step)
                          : 0;
  const double epoch = static_cast<double>(step) / static_cast<double>(options_.steps_per_epoch);
  const std::map<std::string, HyperValue> fields = {{"event", std::string("progress")},
                                                    {"step", static_cast<double>(step)},
                                                    {"epoch", epoch},
                                                    {"loss", loss},
                                                    {"accuracy", accuracy},
                                                    {"samples_per_s", std::round(rate)},
                                                    {"seconds", now},
                                                    {"seconds_left", left}};
  record(fields);
  if (options_.json) {
    write_line(to_json(fields));
  } else {
    const std::string line = fmt::format(
        "epoch {:.2f}  step {}{}  loss {:.4f}  accuracy {:.2f} %  {} samples/s{}{}", epoch, step,
        options_.steps_total > 0 ? fmt::format("/{}", options_.steps_total) : "", loss, accuracy * 100,
        with_thousands(rate), test_accuracy_ >= 0 ? fmt::format("  test {:.2f} %", test_accuracy_ * 100) : "",
        left > 0 ? "  " + format_duration(Duration(static_cast<std::int64_t>(left * 1e6))) + " left" : "");
    if (options_.terminal) {
      fmt::print(out_, "\r\x1b[K{}", line);
      std::fflush(out_);
      live_ = true;
    } else {
      write_line(line);
    }
  }
  if (events_) {
    const auto scalar = [&](const char* tag, double value) {
      if (auto put = events_->scalar(wall(), step, tag, static_cast<float>(value)); !put)
        log::warning("events.not_written", {{"why", put.error().what}});
    };
    scalar("train/loss", loss);
    scalar("train/accuracy", accuracy);
    scalar("train/samples_per_second", rate);
  }
  loss_ = correct_ = samples_ = 0;
  reported_trained_ = now;
}

void Progress::evaluated(std::uint64_t step, double accuracy, double loss) {
  report(step);
  test_accuracy_ = accuracy;
  const double epoch = static_cast<double>(step) / static_cast<double>(options_.steps_per_epoch);
  const std::map<std::string, HyperValue> fields = {{"event", std::string("test")},
                                                    {"step", static_cast<double>(step)},
                                                    {"epoch", epoch},
                                                    {"test_accuracy", accuracy},
                                                    {"test_loss", loss},
                                                    {"seconds", seconds()}};
  record(fields);
  if (options_.json)
    write_line(to_json(fields));
  else if (!options_.terminal)
    write_line(fmt::format("epoch {:.2f}  step {}  test accuracy {:.2f} %  test loss {:.4f}", epoch, step,
                           accuracy * 100, loss));
  if (!events_) return;
  for (const auto& [tag, value] : {std::pair{"test/accuracy", accuracy}, std::pair{"test/loss", loss}})
    if (auto put = events_->scalar(wall(), step, tag, static_cast<float>(value)); !put)
      log::warning("events.not_written", {{"why", put.error().what}});
}

void Progress::histograms(std::uint64_t step, const std::vector<Parameter>& parameters,
                          std::span<const float> plain) {
  if (!events_) return;
  for (const Parameter& parameter : parameters) {
    const auto values = plain.first(parameter.plain_floats());
    plain = plain.subspan(values.size());
    if (auto put = events_->histogram(wall(), step, "weights/" + parameter.name, values); !put)
      log::warning("events.not_written", {{"why", put.error().what}});
  }
}

void Progress::hyperparameters(const std::map<std::string, HyperValue>& values) {
  std::map<std::string, HyperValue> fields = values;
  fields["event"] = std::string("parameters");
  record(fields);
  if (options_.json) write_line(to_json(fields));
  if (!events_) return;
  if (auto put = events_->hyperparameters(wall(), values); !put)
    log::warning("events.not_written", {{"why", put.error().what}});
}

void Progress::report_event(const std::string& event, const std::string& sentence,
                            const std::map<std::string, HyperValue>& fields) {
  std::map<std::string, HyperValue> all = fields;
  all["event"] = event;
  record(all);
  clear_live_line();
  write_line(options_.json ? to_json(all) : sentence);
}

void Progress::clear_live_line() {
  if (std::exchange(live_, false)) fmt::print(out_, "\r\x1b[K");
}

void Progress::write_line(const std::string& text) {
  fmt::print(out_, "{}\n", text);
  std::fflush(out_);
}

void Progress::record(const std::map<std::string, HyperValue>& fields) {
  if (!metrics_) return;
  std::map<std::string, HyperValue> all = fields;
  all["time"] = format_time(clock_.now());
  if (auto put = write_all(metrics_.get(), to_json(all) + "\n", "metrics.jsonl"); !put)
    log::warning("metrics.not_written", {{"why", put.error().what}});
}

}  // namespace slipway::train
