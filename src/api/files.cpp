// Where the files of an attempt lie, and reading them as a whole or in ranges.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>

#include "api/api.h"
#include "api/checkpoint_source.h"
#include "api/find_task.h"
#include "api/masked_source.h"
#include "base/sha256.h"
#include "control/find_job.h"
#include "domain/layout.h"
#include "wire/files.h"
#include "wire/records.h"

namespace slipway::api {

using control::ReadStore;
using control::Snapshot;

constexpr std::uint32_t files_listed = 1000;  // on a page, unless asked

Result<Api::AttemptFiles> Api::find_attempt_files(const Snapshot& live, ReadStore& store,
                                                  const control::Caller& caller, const std::string& job_name,
                                                  const std::string& task_name,
                                                  std::optional<std::uint32_t> attempt) const {
  AttemptFiles files;
  auto job = control::find_job(store, caller.workspace, job_name);
  if (!job) return fail(job.error());
  files.job = *job;
  auto task = find_task(store, *job, task_name);
  if (!task) return fail(task.error());
  files.task = *task;
  auto spec = store.task_spec(job->id, files.task.ref.group);
  if (!spec) return fail(spec.error());
  auto masker = output_mask_.of(store, *job, *spec);
  if (!masker) return fail(masker.error());
  files.masker = std::move(*masker);
  files.members = gang_of(*spec);
  files.checkpoints = checkpoint_folder(job->workspace, job->id, *spec, files.task.name);
  auto attempts = store.attempts(files.task.ref);
  if (!attempts) return fail(attempts.error());
  const AttemptRecord* found = attempts->empty() ? nullptr : &attempts->back();
  if (attempt) {
    found = nullptr;
    for (const AttemptRecord& one : *attempts)
      if (one.key.attempt == *attempt) found = &one;
    if (!found && *attempt == files.task.attempts + 1) return files;  // the next one, if it comes
    if (!found)
      return fail(ErrorCode::not_found, fmt::format("there is no attempt {} of {}", *attempt, task_name),
                  fmt::format("it has had {}", attempts->size()));
  }
  if (!found) return files;
  files.attempt = found->key.attempt;
  files.ended = found->ended_at.has_value();
  files.nodes = found->node_names();
  files.members = gang_of(*spec, static_cast<std::uint32_t>(files.nodes.size()));
  files.is_named = is_named(*spec, files.members.size());
  files.started_at = found->started_at;
  files.has_wd = spec->workdir.empty();
  for (const std::string& name : files.nodes) {
    const auto node = live.node(caller.workspace, name);
    files.here.push_back(!node || node->node.local || node->node.shares_storage);
  }
  return files;
}

// A thousand files take milliseconds to write down, which everybody else would wait for on the network's
// thread.
void Api::send_page(const Call& call, FilePage page) {
  const bool queued = disk_reads_.post([call, page = std::move(page)] {
    std::vector<std::string> items;
    items.reserve(page.items.size());
    for (const FileItem& item : page.items)
      items.push_back(wire::format_file(item.path, item.kind, item.size, item.modified_at));
    call.loop().post([call, body = wire::format_list(items, page.next)]() mutable {
      call.send(json(200, std::move(body)));
    });
  });
  if (!queued)
    call.send(problem({ErrorCode::unavailable, "too much waits for the disk", "try again shortly"}));
}

Result<std::uint32_t> Api::rank_of(const AttemptFiles& files, const std::string& process) {
  std::string names;
  for (std::uint32_t rank = 0; rank < files.members.size(); ++rank) {
    const std::string name = member_name(files.members[rank], rank);
    if (process == name || process == std::to_string(rank)) return rank;
    if (rank < 20) names += (names.empty() ? "" : ", ") + name;
  }
  return fail(ErrorCode::not_found,
              fmt::format("{} has no process {}", files.task.name, process.substr(0, 50)),
              fmt::format("its processes are {}{}", names, files.members.size() > 20 ? ", …" : ""));
}

void Api::add_own_files(const AttemptFiles& files, std::uint32_t rank, OwnFiles& own) {
  StreamNames names = stream_names(member_name(files.members[rank], rank), files.is_named);
  if (files.has_wd) own.folders.push_back(std::move(names.wd));
  own.streams.push_back(std::move(names.out));
  own.streams.push_back(std::move(names.err));
}

std::shared_ptr<FileSource> Api::source_of(const AttemptFiles& files, std::uint32_t rank) {
  OwnFiles own;
  add_own_files(files, rank, own);
  return source_of(files, rank, std::move(own));
}

std::shared_ptr<FileSource> Api::source_of_all(const AttemptFiles& files) {
  OwnFiles own{.folders = {"outputs"}, .streams = {}, .made_at = std::nullopt};
  if (files.ended) own.made_at = files.started_at;
  const auto storage_of = [&](std::uint32_t rank) {  // nodes that store their files here store them together
    const std::size_t node = files.members[rank].node;
    return node >= files.here.size() || files.here[node] ? std::nullopt : std::optional(node);
  };
  for (std::uint32_t rank = 0; rank < files.members.size(); ++rank)
    if (storage_of(rank) == storage_of(0)) add_own_files(files, rank, own);
  return source_of(files, 0, std::move(own));
}

std::shared_ptr<FileSource> Api::source_of(const AttemptFiles& files, std::uint32_t rank, OwnFiles own) {
  const std::string folder =
      attempt_folder(files.job.workspace, files.job.id, files.task.name, files.attempt);
  const std::size_t node = files.members[rank].node;
  const auto source = [&](const std::string& of, OwnFiles made) {
    return node < files.here.size() && !files.here[node]
               ? files_on_node(sessions_, files.job.workspace, files.nodes[node], of, std::move(made))
               : files_here(options_.data + "/" + of, std::move(made), loop_, watcher_, disk_reads_);
  };
  auto all = with_checkpoints(source(folder, std::move(own)), source(files.checkpoints, {}));
  return files.masker.is_empty() ? all : with_masked(std::move(all), files.masker);
}

std::optional<Api::Part> Api::part_of(const Call& call, std::uint64_t size, net::Headers& headers) {
  headers.emplace_back("Accept-Ranges", "bytes");
  const auto asked = call.request().header("Range");
  if (!asked) return Part{200, 0, size};
  const auto range = net::parse_range(*asked, size);
  if (!range) {
    call.send({416, {{"Content-Range", fmt::format("bytes */{}", size)}}, ""});
    return std::nullopt;
  }
  if (!*range) return Part{200, 0, size};
  headers.emplace_back("Content-Range", fmt::format("bytes {}-{}/{}", (*range)->first, (*range)->last, size));
  return Part{206, (*range)->first, (*range)->last - (*range)->first + 1};
}

void Api::send_file(const Call& call, const std::shared_ptr<FileSource>& source, const std::string& path,
                    std::uint32_t attempt) {
  source->size(path, [this, call, source, path, attempt](Result<std::uint64_t> size) {
    if (!size) return call.send(problem(size.error()));
    net::Headers headers{{"Content-Type", "application/octet-stream"}};
    if (attempt > 0) headers.emplace_back("X-Slipway-Attempt", std::to_string(attempt));
    const auto part = part_of(call, *size, headers);
    if (!part) return;
    if (*size == 0) return call.send({part->status, std::move(headers), ""});  // it may not lie on the disk
    auto file = source->open_here(path);
    if (!file) return call.send(problem(file.error()));
    if (*file)
      return call.exchange().send_file(part->status, std::move(headers), std::move(*file), part->offset,
                                       part->length);
    stream_file(call, source, path, part->offset, part->offset + part->length, part->status,
                std::move(headers));
  });
}

// From a node, piece by piece: the next is asked for when the one before has gone out.
void Api::stream_file(const Call& call, std::shared_ptr<FileSource> source, const std::string& path,
                      std::uint64_t offset, std::uint64_t end, int status, net::Headers headers) {
  struct Copy : std::enable_shared_from_this<Copy> {
    std::shared_ptr<FileSource> source;
    std::string path;
    std::uint64_t offset, end;
    std::shared_ptr<net::Stream> stream;
    void next() {
      if (offset >= end) return stream->finish();
      source->read(
          path, offset, std::min<std::uint64_t>(end - offset, 256 << 10),
          [self = shared_from_this()](Result<std::string> bytes) {
            if (!bytes || bytes->empty())
              return;  // dropping the stream cuts the connection: the client sees that it is not whole
            self->offset += bytes->size();
            self->stream->write(std::move(*bytes), [self] { self->next(); });
          });
    }
  };
  auto copy = std::make_shared<Copy>();
  copy->source = std::move(source);
  copy->path = path;
  copy->offset = offset;
  copy->end = end;
  copy->stream = call.exchange().start_stream(status, std::move(headers));
  copy->next();
}

Result<std::optional<std::uint32_t>> attempt_of(const Call& call) {
  const auto text = call.parameter("attempt");
  if (!text) return std::nullopt;
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (error != std::errc{} || end != text->data() + text->size() || number == 0)
    return fail(ErrorCode::invalid, fmt::format("attempt '{}' is not a number from 1", text->substr(0, 50)));
  return number;
}

void Api::add_file_routes() {
  const auto with_attempt_files = [this](const Call& call, std::function<void(const AttemptFiles&)> then) {
    const auto attempt = attempt_of(call);
    if (!attempt) return call.send(problem(attempt.error()));
    read_live<AttemptFiles>(
        call,
        [this, call, attempt = *attempt](const Snapshot& live, ReadStore& store) {
          return find_attempt_files(live, store, call.caller, call.part("job"), call.part("task"), attempt);
        },
        [call, then = std::move(then)](const AttemptFiles& files) {
          if (files.attempt == 0)
            return call.send(
                problem({ErrorCode::not_found,
                         fmt::format("{}/{} has no files yet: it has not started", to_string(files.job.id),
                                     files.task.name),
                         fmt::format("slipway job why {} says what it waits for", to_string(files.job.id))}));
          then(files);
        });
  };
  router_.add("GET", "/v1/jobs/{job}/tasks/{task}/files", {Object::job, Verb::read},
              [this, with_attempt_files](const Call& call) {
                const auto limit = limit_of(call, files_listed);
                if (!limit) return call.send(problem(limit.error()));
                with_attempt_files(call, [this, call, limit = *limit](const AttemptFiles& files) {
                  auto source = source_of_all(files);
                  source->list(call.parameter("path").value_or(""), call.parameter("after").value_or(""),
                               limit, [this, call, source](Result<FilePage> page) {
                                 if (!page) return call.send(problem(page.error()));
                                 send_page(call, std::move(*page));
                               });
                });
              });
  router_.add("GET", "/v1/jobs/{job}/tasks/{task}/files/content", {Object::job, Verb::read},
              [this, with_attempt_files](const Call& call) {
                const auto path = call.parameter("path");
                if (!path || path->empty())
                  return call.send(
                      problem({ErrorCode::invalid, "the request names no file", "add ?path=stdout.txt"}));
                with_attempt_files(call, [this, call, path = *path](const AttemptFiles& files) {
                  send_file(call, source_of_all(files), path, files.attempt);
                });
              });

  router_.add("POST", "/v1/blobs/missing", {Object::source, Verb::create}, [this](const Call& call) {
    if (call.request().body.empty())
      return call.send(problem({ErrorCode::invalid, "the request has no body", R"(send {"hashes": [...]})"}));
    const bool queued = worker_.post([this, call] {
      auto hashes = wire::parse_hashes(call.request().body);
      if (!hashes) return call.loop().post([call, error = hashes.error()] { call.send(problem(error)); });
      std::string missing;
      for (const std::string& hash : *hashes)
        if (!blobs_.has(hash)) missing += (missing.empty() ? "" : ",") + wire::quote(hash);
      call.loop().post([call, missing] { call.send(json(200, "{\"missing\":[" + missing + "]}")); });
    });
    if (!queued)
      call.send(problem({ErrorCode::unavailable, "too much waits for the disk", "try again shortly"}));
  });
  router_.add("PUT", "/v1/blobs/{hash}", {Object::source, Verb::create}, [this](const Call& call) {
    const std::string hash = call.part("hash");
    const auto file = call.request().body_file;
    if (!is_sha256_hex(hash) || !file) {
      return call.send(problem({ErrorCode::invalid,
                                fmt::format("'{}' is not a SHA-256 in hexadecimal", hash.substr(0, 100)),
                                "name the content by its hash"}));
    }
    const int done = blobs_.has(hash) ? 200 : 201;
    const bool queued = worker_.post([this, call, hash, file, done] {
      auto adopted = blobs_.adopt(file->path(), hash);
      call.loop().post(
          [call, adopted, done] { call.send(adopted ? net::Response{done} : problem(adopted.error())); });
    });
    if (!queued)
      call.send(problem({ErrorCode::unavailable, "too much waits for the disk", "try again shortly"}));
  });
  router_.add("GET", "/v1/blobs/{hash}", {Object::source, Verb::read}, [this](const Call& call) {
    const std::string hash = call.part("hash");
    if (!is_sha256_hex(hash))
      return call.send(
          problem({ErrorCode::invalid,
                   fmt::format("'{}' is not a SHA-256 in hexadecimal", hash.substr(0, 100)), ""}));
    Fd file(::open(blobs_.path(hash).c_str(), O_RDONLY | O_CLOEXEC));
    struct stat status {};
    if (!file || ::fstat(file.get(), &status) != 0)
      return call.send(problem({ErrorCode::not_found, fmt::format("there is no content {}", hash), ""}));
    net::Headers headers{{"Content-Type", "application/octet-stream"}};
    if (const auto part = part_of(call, static_cast<std::uint64_t>(status.st_size), headers))
      call.exchange().send_file(part->status, std::move(headers), std::move(file), part->offset,
                                part->length);
  });
}

}  // namespace slipway::api
