// Events as lists and as streams, and waiting for a job's end.
#include <fmt/format.h>

#include <charconv>
#include <deque>
#include <set>
#include <utility>

#include "api/api.h"
#include "control/find_job.h"
#include "wire/records.h"

namespace slipway::api {
namespace {

using control::ReadStore;

constexpr Duration wait_max = 60s;

// One client's stream of events. It reads the past from the store page by page and then takes what happens as
// it happens; a client too slow for that is given the store's pages again, so nothing piles up here.
class EventStream : public std::enable_shared_from_this<EventStream> {
 public:
  EventStream(ReadPool& reads, EventHub& hub, const Call& call, control::EventQuery query)
      : reads_(reads),
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
    if (!live_) {
      missed_ = true;  // the page that is being read may be older than these
      return;
    }
    for (const EventRecord& event : events)
      if (query_.takes(event) && event.id > query_.after) waiting_.push_back(event);
    if (waiting_.size() > waiting_max) {
      waiting_.clear();
      live_ = false;
      if (!writing_) read_page();
      return;
    }
    write();
  }

  void read_page() {
    if (std::exchange(reading_, true)) return;
    missed_ = false;
    const auto got = [self = shared_from_this()](Result<std::vector<EventRecord>> page) {
      auto shared = std::make_shared<Result<std::vector<EventRecord>>>(std::move(page));
      self->call_.loop().post([self, shared] { self->got(*shared); });
    };
    reads_.post([got, query = query_](ReadStore& store) { got(store.events(query)); },
                [got](const Error& error) { got(fail(error)); });
  }

  void got(const Result<std::vector<EventRecord>>& page) {
    reading_ = false;
    if (!keep_ || !page) return end();
    for (const EventRecord& event : *page) waiting_.push_back(event);
    live_ = page->size() < query_.limit && !missed_;
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

  ReadPool& reads_;
  EventHub& hub_;
  Call call_;
  control::EventQuery query_;
  std::shared_ptr<net::Stream> stream_;
  std::shared_ptr<void> watch_;
  std::shared_ptr<EventStream> keep_;  // itself, while the client is there
  std::deque<EventRecord> waiting_;
  bool live_ = false;
  bool missed_ = false;  // something happened since the page was asked for
  bool reading_ = false;
  bool writing_ = false;
};

// One client that waits for a job's end. It watches before it looks: an end between the two is not missed.
class JobWait : public std::enable_shared_from_this<JobWait> {
 public:
  JobWait(ReadPool& reads, EventHub& hub, const std::vector<ReservedTags>& reserved, const Call& call)
      : reads_(reads), hub_(hub), reserved_(reserved), call_(call) {}

  void start(Duration timeout) {
    keep_ = shared_from_this();
    watch_ = hub_.watch([self = weak_from_this()](const std::vector<EventRecord>& events) {
      if (auto alive = self.lock()) alive->happened(events);
    });
    timer_ = call_.loop().after(timeout, [self = weak_from_this()] {
      if (auto alive = self.lock()) alive->timed_out();
    });
    call_.exchange().on_closed([self = weak_from_this()] {
      if (auto alive = self.lock()) alive->end();
    });
    look();
  }

 private:
  void end() {
    watch_.reset();
    timer_.reset();
    const auto last = std::move(keep_);
  }

  void happened(const std::vector<EventRecord>& events) {
    for (const EventRecord& event : events)
      if (is_job_end(event) && event.job) {
        if (looking_)
          ended_.insert(*event.job);
        else if (event.job == job_)
          return look();
      }
  }

  void timed_out() {
    is_over_ = true;
    if (!looking_) look();
  }

  void look() {
    looking_ = true;
    ended_.clear();
    const auto looked = [self = shared_from_this()](Result<JobRecord> job) {
      self->call_.loop().post([self, job = std::move(job)] { self->looked(job); });
    };
    reads_.post(
        [call = call_, looked](ReadStore& store) {
          looked(control::find_job(store, call.caller.workspace, call.part("job")));
        },
        [looked](const Error& error) { looked(fail(error)); });
  }

  void looked(const Result<JobRecord>& job) {
    looking_ = false;
    if (!keep_) return;
    if (job && !is_terminal(job->state) && !is_over_) {
      job_ = job->id;
      if (ended_.contains(job->id)) look();
      return;
    }
    call_.send(job ? json(200, wire::format(*job, reserved_)) : problem(job.error()));
    end();
  }

  ReadPool& reads_;
  EventHub& hub_;
  const std::vector<ReservedTags>& reserved_;
  Call call_;
  std::shared_ptr<JobWait> keep_;  // itself, while the client is there
  std::shared_ptr<void> watch_;
  std::shared_ptr<net::Loop::Timer> timer_;
  std::optional<JobId> job_;
  std::set<JobId> ended_;  // jobs that ended since it looked
  bool looking_ = false;
  bool is_over_ = false;
};

Result<std::uint64_t> number_of(const std::string& text, std::string_view what) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size())
    return fail(ErrorCode::invalid, fmt::format("{} '{}' is not a number", what, text.substr(0, 50)),
                "use the next of the page before");
  return number;
}

Result<control::EventQuery> event_filter(const Call& call) {
  control::EventQuery query;
  query.workspace = call.caller.workspace;
  query.pool = call.parameter("pool").value_or("");
  query.kind = call.parameter("kind").value_or("");
  const std::string newest = call.parameter("newest").value_or("false");
  if (newest != "true" && newest != "false")
    return fail(ErrorCode::invalid, fmt::format("newest is '{}'", newest.substr(0, 50)), "true or false");
  query.is_newest = newest == "true";
  if (const auto text = call.parameter("since"); text && !text->empty()) {
    auto since = parse_time(*text);
    if (!since) return fail(since.error());
    query.since = *since;
  }
  return query;
}

}  // namespace

void Api::add_event_routes() {
  router_.add("GET", "/v1/events", {Object::event, Verb::read}, [this](const Call& call) {
    auto limit = limit_of(call);
    if (!limit) return call.send(problem(limit.error()));
    const std::string last = call.request().header("Last-Event-ID").value_or("");
    const auto after = number_of(last.empty() ? after_of(call).value_or("0") : last, "after");
    if (!after) return call.send(problem(after.error()));
    const bool follow =
        call.parameter("follow") == "true" ||
        call.request().header("Accept").value_or("").find("text/event-stream") != std::string::npos;
    const auto filter = event_filter(call);
    if (!filter) return call.send(problem(filter.error()));
    if (follow && filter->is_newest)
      return call.send(problem({ErrorCode::invalid, "newest and follow exclude each other",
                                "take the newest first, then follow with after=ID of the last"}));
    const auto query_of = [call, limit = *limit, after = *after,
                           filter = *filter](ReadStore& store) -> Result<control::EventQuery> {
      control::EventQuery query = filter;
      query.after = after;
      query.limit = limit;
      if (const auto name = call.parameter("job")) {
        auto job = control::find_job(store, call.caller.workspace, *name);
        if (!job) return fail(job.error());
        query.job = job->id;
      }
      return query;
    };
    if (follow)
      return read<control::EventQuery>(call, query_of, [this, call](const control::EventQuery& query) {
        std::make_shared<EventStream>(reads_, hub_, call, query)->start();
      });
    answer(call, [query_of](ReadStore& store) -> Result<net::Response> {
      auto query = query_of(store);
      if (!query) return fail(query.error());
      auto events = store.events(*query);
      if (!events) return fail(events.error());
      std::vector<std::string> items;
      items.reserve(events->size());
      for (const EventRecord& event : *events) items.push_back(wire::format(event));
      std::optional<std::string> next;
      if (events->size() == query->limit && !query->is_newest) next = std::to_string(events->back().id);
      return json(200, wire::format_list(items, next));
    });
  });

  router_.add("GET", "/v1/jobs/{job}/wait", {Object::job, Verb::read}, [this](const Call& call) {
    const auto timeout = parse_duration(call.parameter("timeout").value_or("60"));
    if (!timeout) return call.send(problem(timeout.error()));
    std::make_shared<JobWait>(reads_, hub_, reserved_tags_, call)
        ->start(std::clamp(*timeout, Duration(0), wait_max));
  });
}

}  // namespace slipway::api
