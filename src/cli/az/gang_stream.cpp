#include "cli/az/gang_stream.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

namespace slipway::cli::az {
namespace {

constexpr auto look_again_after = 20ms;
constexpr auto list_again_after = 250ms;

// stderr and .txt of stderr.txt.
std::pair<std::string, std::string> stem_and_end(const std::string& file) {
  const std::size_t dot = std::min(file.rfind('.'), file.size());
  return {file.substr(0, dot), file.substr(dot)};
}

}  // namespace

std::string process_of_file(const std::string& name, const std::string& file) {
  const auto [stem, end] = stem_and_end(file);
  if (name.size() < stem.size() + 2 + end.size() || !name.starts_with(stem + "-") || !name.ends_with(end))
    return {};
  return name.substr(stem.size() + 1, name.size() - stem.size() - 1 - end.size());
}

std::vector<std::string> files_of_gang(const std::vector<std::string>& names, const std::string& file) {
  std::vector<std::string> found;
  for (const std::string& name : names) {
    if (name == file) return {};
    if (!process_of_file(name, file).empty()) found.push_back(name);
  }
  std::sort(found.begin(), found.end());
  return found;
}

GangStream::GangStream(std::string file, Look look, Fetch fetch, std::function<void(const std::string&)> say)
    : file_(std::move(file)),
      look_(std::move(look)),
      fetch_(std::move(fetch)),
      say_(std::move(say)),
      output_(STDOUT_FILENO) {}

void GangStream::add(const Seen& seen) {
  std::vector<std::string> fresh;
  for (const auto& [name, link] : seen.links) {
    const std::string process = process_of_file(name, file_);
    if (process.empty()) continue;
    const auto [at, is_new] =
        files_.try_emplace(name, File{link, 0, LineWriter(output_, fmt::format("[{}] ", process))});
    at->second.link = link;  // links end after a while
    if (is_new) fresh.push_back(name);
  }
  if (fresh.empty()) return;
  std::sort(fresh.begin(), fresh.end());
  say_(files_.size() == fresh.size()
           ? fmt::format("There is no {}, but one of each process: {}. All are followed.", file_,
                         fmt::join(fresh, ", "))
           : fmt::format("Also followed: {}", fmt::join(fresh, ", ")));
}

Outcome<bool> GangStream::copy_new() {
  bool any = false;
  for (auto& [name, file] : files_) {
    const Outcome<std::string> bytes = fetch_(file.link, file.done);
    if (!bytes) return give_up(bytes);
    file.done += bytes->size();
    any = any || !bytes->empty();
    if (!file.lines.add(*bytes))
      if (const Outcome<void> state = output_.state(); !state) return give_up(state);
  }
  return any;
}

Outcome<int> GangStream::run() {
  auto listed_at = std::chrono::steady_clock::time_point{};
  for (bool is_over = false;;) {
    if (const auto now = std::chrono::steady_clock::now(); now - listed_at > list_again_after) {
      listed_at = now;
      const Outcome<Seen> seen = look_();
      if (!seen) return give_up(seen);
      add(*seen);
      is_over = seen->is_over;
    }
    const Outcome<bool> any = copy_new();
    if (!any) return give_up(any);
    if (*any) continue;
    if (is_over) break;
    std::this_thread::sleep_for(look_again_after);
  }
  for (auto& [name, file] : files_)
    if (!file.lines.finish())
      if (const Outcome<void> state = output_.state(); !state) return give_up(state);
  return ExitCode::done;
}

}  // namespace slipway::cli::az
