#pragma once
// What a command has of CLI11, shared by command.cpp and command_tree.cpp.
#include <memory>
#include <string>
#include <vector>

#include "cli/commands/command.h"

namespace CLI {
class App;
}

namespace slipway::cli {

struct Command::Entry {
  Entry(CLI::App& app_given, Settings& settings_given) : app(&app_given), settings(settings_given) {}
  ~Entry();
  CLI::App* app;
  Settings& settings;
  CommandWords words;
  Action action;
  bool azure = false;
  bool help = false;  // CLI11 wants a place for it; reached() asks by name
  std::vector<std::string>* rest = nullptr;
  std::vector<std::string>* verbatim = nullptr;
  std::vector<std::unique_ptr<Entry>> children;
  std::unique_ptr<CLI::App> owned;  // the root's
};

// Carries an Error of one of our parsers through CLI11.
struct ValueError {
  std::string flag;
  Error error;
};

}  // namespace slipway::cli
