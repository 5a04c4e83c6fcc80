#pragma once
// The flags every command takes besides its own.
#include <string>

namespace slipway::cli {

struct Settings {
  std::string service;
  std::string token_file;
  std::string data;
  std::string output;  // empty: the command's own, a table for all but Azure-compatible commands
};

}  // namespace slipway::cli
