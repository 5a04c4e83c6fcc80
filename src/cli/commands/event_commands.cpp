#include <fmt/format.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/client/event_stream.h"
#include "cli/client/retry.h"
#include "cli/commands/commands.h"
#include "cli/output/interrupt.h"

namespace slipway::cli {
namespace {

constexpr std::uint32_t tail_max = 1'000;  // one page

struct EventOptions {
  bool follow = false;
  std::string export_file;
  std::string job, pool, kind, since;
  std::optional<std::uint32_t> tail;

  bool has_filter() const {
    return !job.empty() || !pool.empty() || !kind.empty() || !since.empty() || tail.has_value();
  }
};

// 2026-03-02T10:00:00Z: fractions of seconds are in the JSON.
std::string time_of(const Value& event) { return time_text(event, "time"); }

std::string subject_of(const Value& event) {
  const std::string job = event.text_at("job"), task = event.text_at("task");
  if (!task.empty()) return job + "/" + task;
  for (const char* key : {"job", "node", "pool"})
    if (!event.text_at(key).empty()) return event.text_at(key);
  return {};
}

Outcome<std::string> target_of(const Context& context, const EventOptions& options) {
  std::string since;
  if (!options.since.empty()) {
    const Outcome<TimePoint> time = since_of(context, options.since);
    if (!time) return give_up(time);
    since = format_time(*time);
  }
  return with_query(resource({"events"}),
                    {{"job", options.job}, {"pool", options.pool}, {"kind", options.kind}, {"since", since}});
}

Outcome<int> list(Context& context, const std::string& target, std::optional<std::uint32_t> limit = {}) {
  return print_list(context, {.target = target,
                              .columns = {drop(2, {{"TIME"}, time_of}),
                                          drop(1, column("EVENT", "kind")),
                                          {{"ABOUT"}, subject_of},
                                          column("TEXT", "text")},
                              .id = "id",
                              .empty = "nothing has happened yet",
                              .limit = limit});
}

void print_event(const Context& context, const Value& event, const std::string& compact) {
  if (context.is_json())
    write_out(compact + "\n");  // one object per line, for programs that read on
  else if (context.is_quiet())
    write_out(event.text_at("id") + "\n");
  else
    write_out(fmt::format("{}  {:<18}  {:<20}  {}\n", time_of(event), event.text_at("kind"),
                          printable(subject_of(event)), printable(event.text_at("text"))));
}

// The last `tail` of those that are kept, if that is asked for. Returns the id after which to go on.
Outcome<std::string> print_kept(Context& context, const std::string& target,
                                std::optional<std::uint32_t> tail) {
  if (!tail) return std::string("0");
  // Of the newest one the id is needed, even when none is to be shown.
  const auto page = context.service().get(
      with_query(target, {{"newest", "true"}, {"limit", std::to_string(std::max(1u, *tail))}}));
  if (!page) return give_up(page);
  const std::vector<Value>& events = page->items_at("items");
  for (const Value& event : events)
    if (*tail > 0) print_event(context, event, wire::format_json(event));
  if (const Outcome<void> written = finish_output(); !written) return give_up(written);
  return events.empty() ? "0" : events.back().text_at("id");
}

Outcome<int> follow(Context& context, const std::string& kept, std::optional<std::uint32_t> tail) {
  const InterruptMessage interrupt("slipway events -f continues");
  const Outcome<std::string> begin = print_kept(context, kept, tail);
  if (!begin) return give_up(begin);
  const std::string target = with_query(kept, {{"follow", "true"}});
  Outcome<void> output;
  EventStreamReader reader([&](const std::string& data) {
    if (const std::optional<Value> event = wire::parse_answer(data)) print_event(context, *event, data);
    if (output) output = finish_output();
  });
  Retry retry;
  for (;;) {
    net::Client::Options options;
    options.headers = {{"Accept", "text/event-stream"}};
    options.headers.emplace_back("Last-Event-ID", reader.last_id().empty() ? *begin : reader.last_id());
    options.on_piece = [&](std::string_view piece) {
      retry.reset();
      return reader.add(piece) && output.has_value();
    };
    const Outcome<net::Response> answer = context.service().request("GET", target, options);
    if (!output) return give_up(output);
    // The first request fails at once; a stream that broke is taken up where it was.
    if (!answer && (reader.last_id().empty() || !retry.again(answer.error()))) return give_up(answer);
    if (answer) return ExitCode::done;  // the service has ended the stream: it is going down
  }
}

// Everything a replay needs, one object a line: {"kind": "job", "job": {…}}, each as the API has it.
class Recorder {
 public:
  explicit Recorder(Context& context) : context_(context) {}

  Outcome<std::string> record() {
    add("recording", fmt::format(R"({{"version": 1, "time": "{}"}})", format_time(context_.now())));
    if (auto done = add_all("pool", resource({"pools"})); !done) return give_up(done);
    // Jobs may have run in pools that are gone.
    if (auto done = add_all("pool", with_query(resource({"pools"}), {{"deleted", "true"}})); !done)
      return give_up(done);
    if (auto done = add_all("node", resource({"nodes"})); !done) return give_up(done);
    if (auto done = add_all("event", resource({"events"})); !done) return give_up(done);
    std::vector<std::string> jobs;
    const auto noted = context_.service().pages(resource({"jobs"}), [&](const std::vector<Value>& page) {
      for (const Value& job : page) jobs.push_back(job.text_at("id"));
      return true;
    });
    if (!noted) return give_up(noted);
    for (auto job = jobs.rbegin(); job != jobs.rend(); ++job) {  // oldest first
      const auto shown = context_.service().get(with_query(resource({"jobs", *job}), {{"spec", "all"}}));
      if (!shown) return give_up(shown);
      add("job", wire::format_json(*shown));
      if (auto done = add_all("attempt", resource({"jobs", *job, "attempts"}), *job); !done)
        return give_up(done);
    }
    return std::move(lines_);
  }
  std::size_t count() const { return count_; }

 private:
  void add(const std::string& kind, const std::string& json, const std::string& job = {}) {
    lines_ += fmt::format(R"({{"kind": "{0}", {1}"{0}": {2}}})", kind,
                          job.empty() ? "" : fmt::format(R"("job": "{}", )", job), json) +
              "\n";
    ++count_;
  }
  Outcome<void> add_all(const std::string& kind, const std::string& target, const std::string& job = {}) {
    return context_.service().pages(target, [&](const std::vector<Value>& page) {
      for (const Value& item : page) add(kind, wire::format_json(item), job);
      return true;
    });
  }

  Context& context_;
  std::string lines_;
  std::size_t count_ = 0;
};

Outcome<int> export_all(Context& context, const std::string& file) {
  Recorder recorder(context);
  const Outcome<std::string> lines = recorder.record();
  if (!lines) return give_up(lines);
  if (file == "-") {
    write_out(*lines);
    return ExitCode::done;
  }
  if (auto written = write_file_durably(file, *lines, 0644); !written)
    return give_up(to_failure(written.error()));
  context.say(fmt::format("{} lines are in {}; slipway sim replay --from {} runs them again",
                          recorder.count(), file, file));
  return ExitCode::done;
}

}  // namespace

void add_events(CommandTree& tree, Context& context) {
  auto options = std::make_shared<EventOptions>();
  tree.add("events", "What happened, in order, with times and reasons", "slipway events -f --job job_1")
      .flag("-f,--follow", options->follow, "follow new events; with -o json one object per line")
      .text("--job JOB", options->job, "only what is about this job")
      .text("--pool POOL", options->pool, "only what is about this pool, its nodes and its jobs")
      .text("--kind EVENT", options->kind, "only events of this kind: node.lost, or node for all about nodes")
      .text("--since TIME", options->since, "only what happened since then: 10m, or a time")
      .number("--tail N", options->tail, "only the last N, at most 1000")
      .text("--export FILE", options->export_file,
            "write all that is on record as JSON lines, for slipway sim replay; - for standard output")
      .runs([&context, options]() -> Outcome<int> {
        if (!options->export_file.empty() && (options->follow || options->has_filter()))
          return misuse("--export takes all that is on record, so neither -f nor a filter goes with it",
                        "slipway events --export events.jsonl");
        if (!options->export_file.empty()) return export_all(context, options->export_file);
        if (options->tail.value_or(0) > tail_max)
          return misuse(fmt::format("--tail is at most {}", tail_max),
                        "slipway events lists all that are kept");
        const Outcome<std::string> target = target_of(context, *options);
        if (!target) return give_up(target);
        if (options->follow) return follow(context, *target, options->tail);
        if (!options->tail) return list(context, *target);
        return list(context, with_query(*target, {{"newest", "true"}}), options->tail);
      });
}

}  // namespace slipway::cli
