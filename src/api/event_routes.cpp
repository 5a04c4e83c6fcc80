// Events as lists and as streams, and waiting for a job's end.
#include <fmt/format.h>

#include <charconv>
#include <deque>

#include "api/api.h"
#include "wire/records.h"

namespace slipway::api {
namespace {

using control::Controller;

// One client's stream of events. It reads the past from the store page by page and then takes what happens as
// it happens; a client too slow for that is given the store's pages again, so nothing piles up here.
class EventStream : public std::enable_shared_from_this<EventStream> {
 public:
  EventStream(control::Loop& control, EventHub& hub, const Call& call, control::EventQuery query)
      : control_(control),
        hub_(hub),
        call_(call),
        query_(std::move(query)),
        stream_(call.exchange().start_stream(
            200, {{"Content-Type", "text/event-stream"}, {"Cache-Control", "no-store"}})) {}

  void start() {
    stream_->on_closed([self = weak_from_this()] {
      if (auto alive = self.lock()) alive->end();
    });
    keep_ = shared_from_this();
    watch_ = hub_.watch([self = weak_from_this()](const std::vector<EventRecord>& events) {
      if (auto alive = self.lock()) alive->happened(events);
    });
    read_page();
  }

 private:
  static constexpr std::size_t waiting_max = 10'000;

  void end() {
    watch_.reset();
    const auto last = std::move(keep_);
  }

  void happened(const std::vector<EventRecord>& events) {
    if (!live_) return;
    for (const EventRecord& event : events)
      if (event.workspace == query_.workspace && (!query_.job || event.job == query_.job) &&
          event.id > query_.after)
        waiting_.push_back(event);
    if (waiting_.size() > waiting_max) {
      waiting_.clear();
      live_ = false;
      if (!writing_) read_page();
      return;
    }
    write();
  }

  void read_page() {
    control_.read([self = shared_from_this(), query = query_, call = call_](Controller& controller) {
      auto page = std::make_shared<Result<std::vector<EventRecord>>>(controller.store().events(query));
      call.loop().post([self, page] { self->got(*page); });
    });
  }

  void got(const Result<std::vector<EventRecord>>& page) {
    if (!keep_ || !page) return end();
    for (const EventRecord& event : *page) waiting_.push_back(event);
    live_ = page->size() < query_.limit;
    write();
  }

  void write() {
    if (writing_ || !keep_) return;
    std::string text;
    while (!waiting_.empty() && text.size() < (64 << 10)) {
      const EventRecord& event = waiting_.front();
      if (event.id > query_.after) {
        text += fmt::format("id: {}\nevent: {}\ndata: {}\n\n", event.id, event.kind, wire::format(event));
        query_.after = event.id;
      }
      waiting_.pop_front();
    }
    if (text.empty()) {
      if (!live_) read_page();
      return;
    }
    writing_ = true;
    stream_->write(std::move(text), [self = shared_from_this()] {
      self->writing_ = false;
      self->write();
    });
  }

  control::Loop& control_;
  EventHub& hub_;
  Call call_;
  control::EventQuery query_;
  std::shared_ptr<net::Stream> stream_;
  std::shared_ptr<void> watch_;
  std::shared_ptr<EventStream> keep_;  // itself, while the client is there
  std::deque<EventRecord> waiting_;
  bool live_ = false;
  bool writing_ = false;
};

Result<std::uint64_t> number_of(const std::string& text, std::string_view what) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size())
    return fail(ErrorCode::invalid, fmt::format("{} '{}' is not a number", what, text.substr(0, 50)));
  return number;
}

}  // namespace

void Api::add_event_routes() {
  router_.add("GET", "/v1/events", Role::viewer, [this](const Call& call) {
    auto limit = limit_of(call);
    if (!limit) return call.send(problem(limit.error()));
    const auto after = number_of(
        call.request().header("Last-Event-ID").value_or(call.parameter("after").value_or("0")), "after");
    if (!after) return call.send(problem(after.error()));
    const bool follow =
        call.parameter("follow") == "true" ||
        call.request().header("Accept").value_or("").find("text/event-stream") != std::string::npos;
    using Found = std::pair<control::EventQuery, std::vector<EventRecord>>;
    read<Found>(
        call,
        [call, limit = *limit, after = *after, follow](Controller& c) -> Result<Found> {
          control::EventQuery query{call.caller.workspace, {}, after, limit};
          if (const auto name = call.parameter("job")) {
            auto job = c.find_job(call.caller, *name);
            if (!job) return fail(job.error());
            query.job = job->id;
          }
          if (follow) return Found{query, {}};
          auto events = c.store().events(query);
          if (!events) return fail(events.error());
          return Found{query, std::move(*events)};
        },
        [this, call, follow](const Found& found) {
          if (follow) return std::make_shared<EventStream>(control_, hub_, call, found.first)->start();
          std::vector<std::string> items;
          for (const EventRecord& event : found.second) items.push_back(wire::format(event));
          const bool more = found.second.size() == found.first.limit;
          call.send(
              json(200, wire::format_list(items, more ? std::optional(std::to_string(found.second.back().id))
                                                      : std::nullopt)));
        });
  });

  router_.add("GET", "/v1/jobs/{job}/wait", Role::viewer, [this](const Call& call) {
    const auto timeout = parse_duration(call.parameter("timeout").value_or("60"));
    if (!timeout) return call.send(problem(timeout.error()));
    read<JobRecord>(
        call, [call](Controller& c) { return c.find_job(call.caller, call.part("job")); },
        [this, call, timeout = *timeout](const JobRecord& job) {
          if (is_terminal(job.state)) return call.send(json(200, wire::format(job)));
          // The watch and the timer keep each other alive until one of them, or the client's going, ends
          // both.
          struct Waiting {
            std::shared_ptr<void> watch;
            std::shared_ptr<net::Loop::Timer> timer;
          };
          auto waiting = std::make_shared<Waiting>();
          auto done = [this, call, waiting, id = job.id] {
            // These hold this very function: they may go only when it has ended.
            const auto watch = std::move(waiting->watch);
            const auto timer = std::move(waiting->timer);
            if (!watch) return;
            answer<JobRecord>(
                call, [call, id](Controller& c) { return c.find_job(call.caller, to_string(id)); },
                [](const JobRecord& now) { return json(200, wire::format(now)); });
          };
          waiting->watch = hub_.watch([this, done, id = job.id](const std::vector<EventRecord>& events) {
            for (const EventRecord& event : events)
              if (event.job == id && is_job_end(event)) return loop_.post(done);
          });
          waiting->timer = loop_.after(std::clamp(timeout, Duration(0), Duration(60'000'000)), done);
          call.exchange().on_closed([waiting] {
            waiting->watch.reset();
            waiting->timer.reset();
          });
        });
  });
}

}  // namespace slipway::api
