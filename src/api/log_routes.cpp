// Logs: what processes wrote, from any byte, also while they write.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <set>
#include <utility>

#include "api/api.h"
#include "api/log_tail.h"
#include "domain/layout.h"
#include "wire/records.h"

namespace slipway::api {
namespace {

using control::ReadStore;
using control::Snapshot;

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

constexpr const char* cut_header = "X-Slipway-Cut";
constexpr const char* cut_text = "the tail is limited to 64 MiB, and a line of it to 16 MiB";

// On a node: a piece is asked for when the one before has come.
void search_on_node(const std::shared_ptr<FileSource>& source, const std::string& path,
                    const std::shared_ptr<TailSearch>& search, std::function<void(Result<void>)> done) {
  const auto piece = search->next();
  if (!piece) return done({});
  source->read(path, piece->offset, piece->length,
               [source, path, search, done = std::move(done)](Result<std::string> bytes) mutable {
                 if (!bytes) return done(fail(bytes.error()));
                 search->add(*bytes);
                 search_on_node(source, path, search, std::move(done));
               });
}

Result<void> search_here(const Fd& file, TailSearch& search) {
  std::string bytes;
  while (const auto piece = search.next()) {
    bytes.resize(piece->length);
    const ssize_t got = ::pread(file.get(), bytes.data(), bytes.size(), static_cast<off_t>(piece->offset));
    if (got < 0) return fail(system_error("cannot read the log", errno));
    search.add(std::string_view(bytes).substr(0, static_cast<std::size_t>(got)));
  }
  return {};
}

}  // namespace

// Searches a file here on the worker, for its disk may be slow; `done` runs on the network's thread.
void Api::find_tail(const std::shared_ptr<FileSource>& source, const std::string& path, std::uint64_t size,
                    std::uint64_t lines, std::function<void(Result<Tail>)> done) {
  if (size == 0) return done(Tail{0, false});  // it may not lie on the disk
  auto search = std::make_shared<TailSearch>(size, lines);
  auto finish = [search, done = std::move(done)](const Result<void>& searched) {
    if (!searched) return done(fail(searched.error()));
    done(Tail{search->begin(), search->is_cut()});
  };
  auto opened = source->open_here(path);
  if (!opened) return finish(fail(opened.error()));
  if (!*opened) return search_on_node(source, path, search, finish);
  auto file = std::make_shared<Fd>(std::move(*opened));
  const bool queued = disk_reads_.post([this, file, search, finish] {
    auto searched = search_here(*file, *search);
    loop_.post([finish, searched] { finish(searched); });
  });
  if (!queued) finish(fail(ErrorCode::unavailable, "too much waits for the disk", "try again shortly"));
}

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

  // One look at a time: two that both find the attempt would answer twice. A look sees a saved turn, and
  // events of later turns may come before its answer: those of this job make it look again.
  void look() {
    if (std::exchange(looking_, true)) return;
    missed_.clear();
    const auto looked = [self = shared_from_this()](Result<Api::AttemptFiles> files) {
      auto shared = std::make_shared<Result<Api::AttemptFiles>>(std::move(files));
      self->call_.loop().post([self, shared] { self->looked(*shared); });
    };
    const auto failed = [looked](const Error& error) { looked(fail(error)); };
    api_.control_.snapshot(
        [self = shared_from_this(), looked, failed](std::shared_ptr<const Snapshot> live) {
          self->api_.reads_.post(
              [self, live, looked](ReadStore& store) {
                const Call& call = self->call_;
                looked(self->api_.find_attempt_files(*live, store, call.caller, call.part("job"),
                                                     call.part("task"), self->query_.attempt));
              },
              failed);
        },
        failed);
  }

  void looked(const Result<Api::AttemptFiles>& files) {
    looking_ = false;
    if (!keep_) return;
    if (!files) {
      call_.send(problem(files.error()));
      return end();
    }
    if (missed_.contains(files->job.id)) return look();
    found(*files);
  }

  void found(const Api::AttemptFiles& files) {
    job_ = files.job.id;
    task_ = files.task.name;
    const auto rank = Api::rank_of(files, query_.process);
    if (!rank) {
      call_.send(problem(rank.error()));
      return end();
    }
    if (files.attempt == 0) {
      if (is_terminal(files.task.state)) {  // it will never write anything
        open_stream(0, false);
        stream_->finish();
        return end();
      }
      return;  // happened() looks again when it starts or ends
    }
    attempt_ = files.attempt;
    ended_ = files.ended;
    const StreamNames names = stream_names(member_name(files.members[*rank], *rank), files.is_named);
    path_ = query_.stream == "stdout" ? names.out : names.err;
    source_ = api_.source_of(files, *rank);
    offset_ = query_.offset;
    if (!query_.tail) return begin(false);
    source_->size(path_, [self = shared_from_this()](Result<std::uint64_t> size) {
      if (!size) return self->begin(false);  // not there yet, so all of it is its tail
      self->api_.find_tail(self->source_, self->path_, *size, *self->query_.tail,
                           [self](const Result<Api::Tail>& tail) {
                             if (tail) self->offset_ = tail->begin;
                             self->begin(tail && tail->is_cut);
                           });
    });
  }

  void begin(bool is_cut) {
    if (!keep_) return;  // the client left while its tail was searched
    open_stream(attempt_, is_cut);
    next();
  }

  void open_stream(std::uint32_t attempt, bool is_cut) {
    net::Headers headers{{"Content-Type", "text/plain; charset=utf-8"},
                         {"X-Slipway-Attempt", std::to_string(attempt)}};
    if (is_cut) headers.emplace_back(cut_header, cut_text);
    stream_ = call_.exchange().start_stream(200, std::move(headers));
    stream_->on_closed([self = weak_from_this()] {
      if (auto alive = self.lock()) alive->end();
    });
  }

  void happened(const std::vector<EventRecord>& events) {
    for (const EventRecord& event : events) {
      if (looking_ && event.job) missed_.insert(*event.job);
      if (looking_ || event.job != job_) continue;
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
  std::set<JobId> missed_;  // jobs with events since it looked
  bool ended_ = false;
  bool reading_ = false;
  bool changed_ = false;
};

void Api::add_log_routes() {
  router_.add("GET", "/v1/jobs/{job}/tasks/{task}/logs", {Object::job, Verb::read}, [this](const Call& call) {
    auto query = query_of(call);
    if (!query) return call.send(problem(query.error()));
    if (query->follow) return std::make_shared<LogFollower>(*this, call, *query)->start();
    read_live<AttemptFiles>(
        call,
        [this, call, query = *query](const Snapshot& live, ReadStore& store) {
          return find_attempt_files(live, store, call.caller, call.part("job"), call.part("task"),
                                    query.attempt);
        },
        [this, call, query = *query](const AttemptFiles& files) {
          const auto found = rank_of(files, query.process);
          if (!found) return call.send(problem(found.error()));
          const std::uint32_t rank = *found;
          if (files.attempt == 0)
            return call.send({200,
                              {{"Content-Type", "text/plain; charset=utf-8"}, {"X-Slipway-Attempt", "0"}},
                              ""});  // nothing was written yet
          const StreamNames names = stream_names(member_name(files.members[rank], rank), files.is_named);
          const std::string path = query.stream == "stdout" ? names.out : names.err;
          if (!query.tail && query.offset == 0) {
            auto source = source_of(files, rank);
            return source->size(path, [this, call, files, rank, path, source](Result<std::uint64_t> size) {
              if (!size && size.error().code == ErrorCode::not_found)
                return call.send({200,
                                  {{"Content-Type", "text/plain; charset=utf-8"},
                                   {"X-Slipway-Attempt", std::to_string(files.attempt)}},
                                  ""});  // never started
              send_file(call, source_of(files, rank), path, files.attempt);
            });
          }
          auto source = source_of(files, rank);
          source->size(path, [this, call, source, path, query, files](Result<std::uint64_t> size) {
            if (!size) return call.send(problem(size.error()));
            const auto send_from = [this, call, source, path, size = *size,
                                    attempt = files.attempt](const Result<Tail>& tail) {
              if (!tail) return call.send(problem(tail.error()));
              net::Headers headers{{"Content-Type", "text/plain; charset=utf-8"},
                                   {"X-Slipway-Attempt", std::to_string(attempt)}};
              if (tail->is_cut) headers.emplace_back(cut_header, cut_text);
              headers.emplace_back("X-Slipway-Offset", std::to_string(std::min(tail->begin, size)));
              const std::uint64_t from = std::min(tail->begin, size);
              auto file = source->open_here(path);
              if (file && *file)
                return call.exchange().send_file(200, std::move(headers), std::move(*file), from,
                                                 size - from);
              stream_file(call, source, path, from, size, 200, std::move(headers));
            };
            if (query.tail) return find_tail(source, path, *size, *query.tail, send_from);
            send_from(Tail{query.offset, false});
          });
        });
  });
}

}  // namespace slipway::api
