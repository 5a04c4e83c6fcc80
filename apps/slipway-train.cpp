// The native trainer. SIGTERM and SIGINT ask it to save and end.
#include <csignal>
#include <cstdio>
#include <string>
#include <vector>

#include "train/exchange/stop.h"
#include "train/run/commands.h"

extern char** environ;

namespace {

slipway::train::Stop* to_stop = nullptr;

void on_signal(int) {
  if (to_stop != nullptr) to_stop->request();
}

}  // namespace

int main(int count, char** arguments) {
  slipway::train::Stop stop;
  to_stop = &stop;
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGTERM, &action, nullptr);
  action.sa_flags = SA_RESETHAND | SA_RESTART;  // Ctrl-C a second time ends at once
  ::sigaction(SIGINT, &action, nullptr);
  std::signal(SIGPIPE, SIG_IGN);

  slipway::train::Environment environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (const std::size_t equals = text.find('='); equals != std::string::npos)
      environment.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return slipway::train::run_command(std::vector<std::string>(arguments + 1, arguments + count), environment,
                                     stop, {stdout, stderr});
}
