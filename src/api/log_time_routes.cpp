// When a process wrote what: so that clients can show its streams in the order of arrival.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "api/api.h"
#include "base/list_folder.h"
#include "domain/layout.h"
#include "domain/output_times.h"
#include "wire/records.h"

namespace slipway::api {
namespace {

constexpr std::size_t times_piece = 256 << 10;
constexpr std::size_t times_max = 8 << 20;  // bytes; the agent writes far shorter ones

// The file of times, piece by piece; empty where there is none.
void read_times(const std::shared_ptr<FileSource>& source, const std::string& path, std::string text,
                std::function<void(std::string)> done) {
  const std::size_t offset = text.size();
  source->read(
      path, offset, times_piece,
      [source, path, text = std::move(text), done = std::move(done)](Result<std::string> bytes) mutable {
        if (bytes) text += *bytes;
        if (!bytes || bytes->empty() || text.size() >= times_max) return done(std::move(text));
        read_times(source, path, std::move(text), std::move(done));
      });
}

// What the list does not say yet: the streams as they are now, the one that changed first before the other.
void add_present(std::vector<OutputTime>& times, const std::vector<FileItem>& items,
                 const StreamNames& names) {
  std::uint64_t known[2] = {0, 0};
  for (const OutputTime& entry : times)
    known[entry.stream - 1] = std::max(known[entry.stream - 1], entry.end);
  std::vector<OutputTime> now;
  for (const FileItem& item : items)
    for (std::uint8_t stream = 1; stream <= 2; ++stream)
      if (item.path == (stream == 1 ? names.out : names.err) && item.size > known[stream - 1])
        now.push_back({item.modified_at, stream, item.size});
  std::stable_sort(now.begin(), now.end(), [](const OutputTime& a, const OutputTime& b) {
    return std::pair(a.time, a.stream) < std::pair(b.time, b.stream);
  });
  times.insert(times.end(), now.begin(), now.end());
}

net::Response response_of(const std::vector<OutputTime>& times, std::uint32_t attempt) {
  std::vector<std::string> items;
  items.reserve(times.size());
  for (const OutputTime& entry : times)
    items.push_back(wire::format_object({{"time", wire::quote(format_time(entry.time))},
                                         {"stream", wire::quote(entry.stream == 1 ? "stdout" : "stderr")},
                                         {"end", std::to_string(entry.end)}}));
  net::Response response = json(200, wire::format_list(items, std::nullopt));
  response.headers.emplace_back("X-Slipway-Attempt", std::to_string(attempt));
  return response;
}

}  // namespace

void Api::add_log_time_routes() {
  router_.add(
      "GET", "/v1/jobs/{job}/tasks/{task}/logs/times", {Object::job, Verb::read}, [this](const Call& call) {
        const auto attempt = attempt_of(call);
        if (!attempt) return call.send(problem(attempt.error()));
        read_live<AttemptFiles>(
            call,
            [this, call, attempt = *attempt](const control::Snapshot& live, control::ReadStore& store) {
              return find_attempt_files(live, store, call.caller, call.part("job"), call.part("task"),
                                        attempt);
            },
            [this, call](const AttemptFiles& files) {
              const auto rank = rank_of(files, call.parameter("process").value_or("0"));
              if (!rank) return call.send(problem(rank.error()));
              if (files.attempt == 0) return call.send(response_of({}, 0));  // nothing was written yet
              const StreamNames names =
                  stream_names(member_name(files.members[*rank], *rank), files.is_named);
              const std::shared_ptr<FileSource> source = source_of(files, *rank);
              const auto add = [call, source, names, number = files.attempt](const std::string& text) {
                source->list("", "", listed_by_name_max,
                             [call, text, names, number, source](const Result<FilePage>& page) {
                               std::vector<OutputTime> times = parse_output_times(text);
                               if (!page && page.error().code != ErrorCode::not_found)
                                 return call.send(problem(page.error()));
                               if (page) add_present(times, page->items, names);
                               call.send(response_of(times, number));
                             });
              };
              read_times(source, output_times_file(names.out), {}, add);
            });
      });
}

}  // namespace slipway::api
