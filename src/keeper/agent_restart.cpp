#include "keeper/agent_restart.h"

#include <algorithm>

#include "base/file.h"
#include "base/subprocess.h"
#include "keeper/log.h"

namespace slipway::keeper {
namespace {

constexpr Duration wait_first = 100ms;  // one that was started by somebody else gets to connect
constexpr Duration wait_longest = 5s;

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\0'), text.size());
    words.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

}  // namespace

void AgentRestart::lost(TimePoint now) {
  wait_ = std::clamp(wait_ * 2, wait_first, wait_longest);
  due_ = now + wait_;
}

pid_t AgentRestart::run(TimePoint now) {
  const Result<std::string> command = read_file(folder_ + "/" + std::string(agent_command_file));
  if (!command || command->empty()) {
    due_.reset();
    return 0;
  }
  lost(now);
  auto started = Subprocess::start({.argv = words_of(*command),
                                    .program = "/proc/self/exe",
                                    .output = Stdio::file,
                                    .error_output = Stdio::output,
                                    .output_file = folder_ + "/agent.log",
                                    .group = ProcessGroup::session});
  log_line(started ? "the agent was lost: it is started again"
                   : "the agent cannot be started again: " + started.error().what);
  return started ? started->release() : 0;
}

}  // namespace slipway::keeper
