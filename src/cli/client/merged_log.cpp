#include "cli/client/merged_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace slipway::cli {
namespace {

constexpr std::uint64_t merged_piece = 1 << 20;
constexpr std::size_t merged_line_max = 16u << 20;

struct Step {  // a stream had grown to `end`
  TimePoint time{};
  std::size_t stream = 0;
  std::uint64_t end = 0;
};

// A stream of one process, read in pieces.
class Reader {
 public:
  Reader(Service& service, const LogSource& source, std::uint32_t attempt, const MergedStream& stream)
      : service_(service),
        target_(resource({"jobs", source.job, "tasks", source.task, "logs"})),
        query_{{"stream", stream.stream}, {"process", stream.process}, {"attempt", std::to_string(attempt)}} {
  }

  std::uint64_t offset() const { return offset_ - buffer_.size() + taken_; }  // of what comes next

  // Begins with the last lines.
  Outcome<void> begin_with_tail(std::uint32_t lines) {
    auto query = query_;
    query.emplace_back("tail", std::to_string(lines));
    const Outcome<net::Response> answer = service_.request("GET", with_query(target_, query), {});
    if (!answer && answer.error().status == 404) return {};
    if (!answer) return give_up(answer);
    std::uint64_t begin = 0;
    const std::string at = net::find_header(answer->headers, "X-Slipway-Offset").value_or("0");
    std::from_chars(at.data(), at.data() + at.size(), begin);
    buffer_ = answer->body;
    offset_ = begin + buffer_.size();
    return {};
  }

  // What there is before `end`, at most one piece; empty when there is nothing.
  Outcome<std::string_view> take(std::uint64_t end) {
    if (offset() >= end) return std::string_view();
    if (taken_ == buffer_.size())
      if (const Outcome<void> filled = fill(); !filled) return give_up(filled);
    const std::string_view rest = std::string_view(buffer_).substr(taken_);
    const std::string_view piece = rest.substr(0, std::min<std::uint64_t>(rest.size(), end - offset()));
    taken_ += piece.size();
    return piece;
  }

 private:
  Outcome<void> fill() {
    buffer_.clear();
    taken_ = 0;
    net::Client::Options options;
    options.headers = {{"Range", fmt::format("bytes={}-{}", offset_, offset_ + merged_piece - 1)}};
    const Outcome<net::Response> answer = service_.request("GET", with_query(target_, query_), options);
    if (!answer && (answer.error().status == 416 || answer.error().status == 404)) return {};  // no more
    if (!answer) return give_up(answer);
    if (answer->status == 206) buffer_ = answer->body;  // 200: it has nothing on the disk yet
    offset_ += buffer_.size();
    return {};
  }

  Service& service_;
  std::string target_;
  std::vector<std::pair<std::string, std::string>> query_;
  std::string buffer_;
  std::size_t taken_ = 0;     // of the buffer
  std::uint64_t offset_ = 0;  // of the buffer's end
};

// Takes pieces, prints lines.
class Printer {
 public:
  Printer(const LogSource& source, std::vector<MergedStream>& streams)
      : filter_(source.filter), tail_(source.tail), streams_(streams), open_(streams.size()) {}

  bool add(std::size_t which, std::string_view piece, TimePoint time) {
    std::string& line = open_[which];
    while (!piece.empty()) {
      const std::size_t end = piece.find('\n');
      line.append(piece.substr(0, end));
      piece = end == std::string_view::npos ? std::string_view() : piece.substr(end + 1);
      if (end == std::string_view::npos && line.size() < merged_line_max) break;
      if (!print(which, line, "\n", time)) return false;
      line.clear();
    }
    return true;
  }
  bool finish(TimePoint time, LastLine last_line) {
    for (std::size_t which = 0; which < open_.size(); ++which) {
      if (open_[which].empty()) continue;
      const bool is_bare = streams_[which].prefix.empty() && filter_.is_plain();
      if (!is_bare && last_line == LastLine::kept)
        streams_[which].offset -= open_[which].size();
      else if (!print(which, open_[which], is_bare ? "" : "\n", time))
        return false;
    }
    return flush();
  }

 private:
  bool print(std::size_t which, std::string_view line, const char* end, TimePoint time) {
    // The end of a log is for people: of a line that was written over, what was written last.
    if (tail_) {
      while (line.ends_with('\r')) line.remove_suffix(1);
      line = line.substr(line.rfind('\r') + 1);  // npos + 1 is 0
    }
    if (!filter_.takes(line, time)) return true;
    std::string text = filter_.format(streams_[which].prefix, line, time) + end;
    if (!tail_) {
      if (waiting_bytes_ > 0 && waiting_to_ != streams_[which].output && !flush()) return false;
      waiting_to_ = streams_[which].output;
      waiting_bytes_ += text.size();
      waiting_.emplace_back(which, std::move(text));
      return waiting_bytes_ < merged_piece || flush();
    }
    waiting_.emplace_back(which, std::move(text));
    if (waiting_.size() > *tail_) waiting_.pop_front();
    return true;
  }
  bool flush() {
    std::string text;
    for (std::size_t i = 0; i < waiting_.size(); ++i) {
      text += waiting_[i].second;
      const bool is_last = i + 1 == waiting_.size();
      SharedOutput* const output = streams_[waiting_[i].first].output;
      if (!is_last && !waiting_[i].second.ends_with('\n')) text += '\n';
      if (!is_last && streams_[waiting_[i + 1].first].output == output) continue;
      if (!output->write(text)) return false;
      text.clear();
    }
    waiting_.clear();
    waiting_bytes_ = 0;
    return true;
  }

  const LogFilter& filter_;
  std::optional<std::uint32_t> tail_;
  std::vector<MergedStream>& streams_;
  std::vector<std::string> open_;                            // by stream: a line that has begun
  std::deque<std::pair<std::size_t, std::string>> waiting_;  // lines to be printed
  std::size_t waiting_bytes_ = 0;
  SharedOutput* waiting_to_ = nullptr;
};

Outcome<std::vector<Step>> steps_of(Service& service, const LogSource& source, std::uint32_t attempt,
                                    const std::vector<MergedStream>& streams) {
  std::vector<Step> steps;
  std::string asked;
  std::vector<Value> items;
  for (std::size_t which = 0; which < streams.size(); ++which) {
    const MergedStream& stream = streams[which];
    if (which == 0 || asked != stream.process) {
      asked = stream.process;
      const Outcome<Value> answer =
          service.get(with_query(resource({"jobs", source.job, "tasks", source.task, "logs", "times"}),
                                 {{"process", asked}, {"attempt", std::to_string(attempt)}}));
      if (!answer) return give_up(answer);
      items = answer->items_at("items");
    }
    for (const Value& item : items)
      if (item.text_at("stream") == stream.stream)
        steps.push_back({item.time_at("time").value_or(TimePoint{}), which, item.count_at("end")});
  }
  std::stable_sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) { return a.time < b.time; });
  return steps;
}

}  // namespace

Outcome<void> copy_merged(Service& service, const LogSource& source, std::uint32_t attempt,
                          LastLine last_line, std::vector<MergedStream>& streams) {
  const Outcome<std::vector<Step>> steps = steps_of(service, source, attempt, streams);
  if (!steps) return give_up(steps);
  std::vector<Reader> readers;
  for (const MergedStream& stream : streams) readers.emplace_back(service, source, attempt, stream);
  const bool has_tail = source.tail && !source.filter.pattern && !source.filter.since;
  for (Reader& reader : readers)
    if (has_tail)
      if (const Outcome<void> begun = reader.begin_with_tail(*source.tail); !begun) return begun;
  Printer printer(source, streams);
  TimePoint last{};
  for (const Step& step : *steps) {
    last = step.time;
    for (;;) {
      const Outcome<std::string_view> piece = readers[step.stream].take(step.end);
      if (!piece) return give_up(piece);
      if (piece->empty()) break;
      if (!printer.add(step.stream, *piece, step.time)) return streams[step.stream].output->state();
    }
  }
  for (std::size_t which = 0; which < streams.size(); ++which)
    streams[which].offset = readers[which].offset();
  if (!printer.finish(last, last_line))
    for (const MergedStream& stream : streams)
      if (Outcome<void> state = stream.output->state(); !state) return state;
  return {};
}

}  // namespace slipway::cli
