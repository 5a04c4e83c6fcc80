#pragma once
// The flags every command takes besides its own, and those of every list.
#include <string>

namespace slipway::cli {

struct Settings {
  std::string service;
  std::string token_file;
  std::string data;
  std::string output;   // empty: the command's own, a table for all but Azure-compatible commands
  std::string columns;  // of a list: JOB,STATE; empty: its own
  bool watch = false;
  bool no_headers = false;
  bool no_pager = false;
};

}  // namespace slipway::cli
