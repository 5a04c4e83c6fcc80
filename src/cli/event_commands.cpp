#include <fmt/format.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/event_stream.h"
#include "cli/interrupt.h"
#include "cli/patience.h"

namespace slipway::cli {
namespace {

struct EventOptions {
  bool follow = false;
  std::string job;
};

// 2026-03-02T10:00:00Z: fractions of seconds are in the JSON.
std::string time_of(const Value& event) { return time_text(event, "time"); }

std::string subject_of(const Value& event) {
  const std::string job = event.text("job"), task = event.text("task");
  if (!task.empty()) return job + "/" + task;
  for (const char* key : {"job", "node", "pool"})
    if (!event.text(key).empty()) return event.text(key);
  return {};
}

Outcome<int> list(Context& context, const std::string& target) {
  return print_list(context, {.target = target,
                              .columns = {{{"TIME"}, time_of},
                                          column("EVENT", "kind"),
                                          {{"ABOUT"}, subject_of},
                                          column("TEXT", "text")},
                              .id = "id",
                              .empty = "nothing has happened yet"});
}

void print_event(const Context& context, const Value& event, const std::string& compact) {
  if (context.is_json())
    write_out(compact + "\n");  // one object per line, for programs that read on
  else if (context.is_quiet())
    write_out(event.text("id") + "\n");
  else
    write_out(fmt::format("{}  {:<18}  {:<20}  {}\n", time_of(event), event.text("kind"),
                          printable(subject_of(event)), printable(event.text("text"))));
}

Outcome<int> follow(Context& context, const std::string& target) {
  const InterruptMessage interrupt("the service goes on; slipway events -f follows it again");
  Outcome<void> output;
  EventStreamReader reader([&](const std::string& data) {
    if (const std::optional<Value> event = Value::parse(data)) print_event(context, *event, data);
    if (output) output = finish_output();
  });
  Patience patience;
  for (;;) {
    net::Client::Options options;
    options.headers = {{"Accept", "text/event-stream"}};
    // After 0: from the beginning of what is kept.
    options.headers.emplace_back("Last-Event-ID", reader.last_id().empty() ? "0" : reader.last_id());
    options.on_piece = [&](std::string_view piece) {
      patience.renew();
      return reader.add(piece) && output.has_value();
    };
    const Outcome<net::Response> answer = context.service().request("GET", target, options);
    if (!output) return give_up(output);
    // The first request fails at once; a stream that broke is taken up where it was.
    if (!answer && (reader.last_id().empty() || !patience.lasts(answer.error()))) return give_up(answer);
    if (answer) return ExitCode::done;  // the service has ended the stream: it is going down
  }
}

}  // namespace

void add_events(CommandTree& tree, Context& context) {
  auto options = std::make_shared<EventOptions>();
  tree.add("events", "What happened, in order, with times and reasons", "slipway events -f --job job_1")
      .flag("-f,--follow", options->follow, "go on with what comes; with -o json one object per line")
      .text("--job JOB", options->job, "only what is about this job")
      .runs([&context, options] {
        const std::string target = with_query(resource({"events"}), {{"job", options->job}});
        return options->follow ? follow(context, with_query(target, {{"follow", "true"}}))
                               : list(context, target);
      });
}

}  // namespace slipway::cli
