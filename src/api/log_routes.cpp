// Logs: what processes wrote, from any byte, also while they write.
#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "api/api.h"
#include "domain/layout.h"
#include "wire/records.h"

namespace slipway::api {
namespace {

using control::Controller;

constexpr std::size_t piece_size = 256 << 10;

struct LogQuery {
  std::string stream = "stdout";
  std::string process = "0";  // rank or name
  std::optional<std::uint32_t> attempt;
  std::optional<std::uint64_t> tail;
  std::uint64_t offset = 0;
  bool follow = false;
};

template <class Number>
Result<std::optional<Number>> number_in(const Call& call, std::string_view name) {
  const auto text = call.parameter(name);
  if (!text) return std::nullopt;
  Number number = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (error != std::errc{} || end != text->data() + text->size())
    return fail(ErrorCode::invalid, fmt::format("{} '{}' is not a number", name, text->substr(0, 50)));
  return number;
}

Result<LogQuery> query_of(const Call& call) {
  LogQuery query;
  query.stream = call.parameter("stream").value_or("stdout");
  if (query.stream != "stdout" && query.stream != "stderr")
    return fail(ErrorCode::invalid, fmt::format("there is no stream '{}'", query.stream.substr(0, 50)),
                "the streams are stdout and stderr");
  auto attempt = number_in<std::uint32_t>(call, "attempt");
  auto tail = number_in<std::uint64_t>(call, "tail");
  auto offset = number_in<std::uint64_t>(call, "offset");
  if (!attempt) return fail(attempt.error());
  if (!tail) return fail(tail.error());
  if (!offset) return fail(offset.error());
  query.process = call.parameter("process").value_or("0");
  query.attempt = *attempt;
  query.tail = *tail;
  query.offset = offset->value_or(0);
  query.follow = call.parameter("follow") == "true";
  return query;
}

// Where the last `lines` lines of the file begin, looked for from its end.
void find_tail(std::shared_ptr<FileSource> source, std::string path, std::uint64_t end, std::uint64_t lines,
               std::function<void(Result<std::uint64_t>)> done, std::uint64_t size) {
  if (end == 0 || lines == 0) return done(lines == 0 ? size : 0);
  const std::uint64_t begin = end > piece_size ? end - piece_size : 0;
  source->read(path, begin, end - begin, [=](Result<std::string> bytes) {
    if (!bytes) return done(fail(bytes.error()));
    std::uint64_t left = lines;
    for (std::size_t i = bytes->size(); i-- > 0;) {
      // The line end that closes the last line does not begin another.
      if ((*bytes)[i] != '\n' || begin + i + 1 == size) continue;
      if (--left == 0) return done(begin + i + 1);
    }
    find_tail(source, path, begin, left, done, size);
  });
}

}  // namespace

// One client that reads a log as it grows: waits for the attempt to start, ends when it has ended and all is
// read.
class LogFollower : public std::enable_shared_from_this<LogFollower> {
 public:
  LogFollower(Api& api, const Call& call, LogQuery query)
      : api_(api), call_(call), query_(std::move(query)) {}

  void start() {
    keep_ = shared_from_this();
    watch_ = api_.hub_.watch([self = weak_from_this()](const std::vector<EventRecord>& events) {
      if (auto alive = self.lock()) alive->happened(events);
    });
    call_.exchange().on_closed([self = weak_from_this()] {
      if (auto alive = self.lock()) alive->end();
    });
    look();
  }

 private:
  void end() {
    watch_.reset();
    file_watch_.reset();
    stream_.reset();
    const auto last = std::move(keep_);
  }

  // One look at a time: two that both find the attempt would answer twice.
  void look() {
    look_again_ = looking_;
    if (std::exchange(looking_, true)) return;
    api_.control_.read([self = shared_from_this()](Controller& c) {
      auto place = std::make_shared<Result<Api::AttemptPlace>>(self->api_.find_place(
          c, self->call_.caller, self->call_.part("job"), self->call_.part("task"), self->query_.attempt));
      self->call_.loop().post([self, place] { self->looked(*place); });
    });
  }

  void looked(const Result<Api::AttemptPlace>& place) {
    looking_ = false;
    if (!keep_) return;
    if (!place) {
      call_.send(problem(place.error()));
      return end();
    }
    found(*place);
    if (keep_ && !source_ && look_again_) look();
  }

  void found(const Api::AttemptPlace& place) {
    job_ = place.job.id;
    task_ = place.task.name;
    const auto rank = Api::rank_of(place, query_.process);
    if (!rank) {
      call_.send(problem(rank.error()));
      return end();
    }
    if (place.attempt == 0) {
      if (is_terminal(place.task.state)) {  // it will never write anything
        open_stream(0);
        stream_->finish();
        return end();
      }
      return;  // happened() looks again when it starts or ends
    }
    attempt_ = place.attempt;
    ended_ = place.ended;
    const StreamNames names = stream_names(member_name(place.members[*rank], *rank), place.is_named);
    path_ = query_.stream == "stdout" ? names.out : names.err;
    source_ = api_.source_of(place, *rank);
    offset_ = query_.offset;
    open_stream(place.attempt);
    if (!query_.tail) return next();
    source_->size(path_, [self = shared_from_this()](Result<std::uint64_t> size) {
      if (!size) return self->next();  // not there yet, so all of it is its tail
      find_tail(
          self->source_, self->path_, *size, *self->query_.tail,
          [self](Result<std::uint64_t> begin) {
            if (begin) self->offset_ = *begin;
            self->next();
          },
          *size);
    });
  }

  void open_stream(std::uint32_t attempt) {
    stream_ = call_.exchange().start_stream(
        200, {{"Content-Type", "text/plain; charset=utf-8"}, {"X-Slipway-Attempt", std::to_string(attempt)}});
    stream_->on_closed([self = weak_from_this()] {
      if (auto alive = self.lock()) alive->end();
    });
  }

  void happened(const std::vector<EventRecord>& events) {
    for (const EventRecord& event : events) {
      if (event.job != job_) continue;
      if (!source_) {
        if (event.task == task_ || is_job_end(event) || event.kind == "task.skipped") return look();
      } else if (event.kind == "attempt.started" && event.task == task_ && event.attempt == attempt_) {
        grown();  // only now there is surely a file to watch
      } else if (event.kind == "attempt.ended" && event.task == task_ && event.attempt == attempt_) {
        ended_ = true;
        grown();
      }
    }
  }

  void grown() {
    if (!reading_) next();
  }

  void next() {
    if (!stream_ || reading_) return;
    reading_ = true;
    file_watch_.reset();
    const bool ended = ended_;  // as known before the read: what it finds then is all there will be
    // Watched before it is read, so that nothing written in between goes unnoticed.
    if (!ended)
      file_watch_ = source_->watch(path_, offset_, [self = weak_from_this()] {
        if (auto alive = self.lock()) alive->changed();
      });
    changed_ = false;
    source_->read(path_, offset_, piece_size, [self = shared_from_this(), ended](Result<std::string> bytes) {
      if (!self->stream_) return;
      if (!bytes || bytes->empty()) {
        self->reading_ = false;
        if (ended) {
          self->stream_->finish();
          return self->end();
        }
        if (self->changed_ || self->ended_) self->next();
        return;
      }
      self->offset_ += bytes->size();
      self->stream_->write(std::move(*bytes), [self] {
        self->reading_ = false;
        self->next();
      });
    });
  }

  void changed() {
    changed_ = true;
    grown();
  }

  Api& api_;
  Call call_;
  LogQuery query_;
  std::shared_ptr<LogFollower> keep_;  // itself, while the client is there
  std::shared_ptr<void> watch_;
  std::shared_ptr<void> file_watch_;
  std::shared_ptr<FileSource> source_;
  std::shared_ptr<net::Stream> stream_;
  std::string path_;
  JobId job_;
  std::string task_;
  std::uint32_t attempt_ = 0;
  std::uint64_t offset_ = 0;
  bool looking_ = false;
  bool look_again_ = false;
  bool ended_ = false;
  bool reading_ = false;
  bool changed_ = false;
};

void Api::add_log_routes() {
  router_.add("GET", "/v1/jobs/{job}/tasks/{task}/logs", Role::viewer, [this](const Call& call) {
    auto query = query_of(call);
    if (!query) return call.send(problem(query.error()));
    if (query->follow) return std::make_shared<LogFollower>(*this, call, *query)->start();
    read<AttemptPlace>(
        call,
        [this, call, query = *query](Controller& c) {
          return find_place(c, call.caller, call.part("job"), call.part("task"), query.attempt);
        },
        [this, call, query = *query](const AttemptPlace& place) {
          const auto found = rank_of(place, query.process);
          if (!found) return call.send(problem(found.error()));
          const std::uint32_t rank = *found;
          if (place.attempt == 0)
            return call.send({200,
                              {{"Content-Type", "text/plain; charset=utf-8"}, {"X-Slipway-Attempt", "0"}},
                              ""});  // nothing was written yet
          const StreamNames names = stream_names(member_name(place.members[rank], rank), place.is_named);
          const std::string path = query.stream == "stdout" ? names.out : names.err;
          if (!query.tail && query.offset == 0) {
            auto source = source_of(place, rank);
            return source->size(path, [this, call, place, rank, path, source](Result<std::uint64_t> size) {
              if (!size && size.error().code == ErrorCode::not_found)
                return call.send({200,
                                  {{"Content-Type", "text/plain; charset=utf-8"},
                                   {"X-Slipway-Attempt", std::to_string(place.attempt)}},
                                  ""});  // never started
              send_file(call, source_of(place, rank), path, place.attempt);
            });
          }
          auto source = source_of(place, rank);
          source->size(path, [this, call, source, path, query, place](Result<std::uint64_t> size) {
            if (!size) return call.send(problem(size.error()));
            net::Headers headers{{"Content-Type", "text/plain; charset=utf-8"},
                                 {"X-Slipway-Attempt", std::to_string(place.attempt)}};
            auto send_from = [this, call, source, path, size = *size, headers](Result<std::uint64_t> begin) {
              if (!begin) return call.send(problem(begin.error()));
              const std::uint64_t from = std::min(*begin, size);
              auto file = source->open_here(path);
              if (file && *file)
                return call.exchange().send_file(200, headers, std::move(*file), from, size - from);
              stream_file(call, source, path, from, size, 200, headers);
            };
            if (query.tail)
              find_tail(source, path, *size, *query.tail, send_from, *size);
            else
              send_from(query.offset);
          });
        });
  });
}

}  // namespace slipway::api
