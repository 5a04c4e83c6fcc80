#pragma once
// The output of a gang, asked for by the name of a single node's file: stderr.txt, where there are
// stderr-wk-0.txt and others. Included in .cpp files only.
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "cli/az/arm.h"
#include "cli/client/log_stream.h"

namespace slipway::cli::az {

// Of the names in a folder those that are `file` of one process: stderr-wk-0.txt of stderr.txt. None where
// the file itself is there.
std::vector<std::string> files_of_gang(const std::vector<std::string>& names, const std::string& file);

// wk-0 of stderr-wk-0.txt.
std::string process_of_file(const std::string& name, const std::string& file);

// Copies what the files of all processes have and get, in whole lines that begin with whose they are. The
// files are fetched by their links; each `look` gives those there are now, name and link, and whether the job
// is over.
class GangStream {
 public:
  struct Seen {
    std::vector<std::pair<std::string, std::string>> links;
    bool is_over = false;
  };
  using Look = std::function<Outcome<Seen>()>;
  // Up to the next bytes of a link from an offset on; empty: nothing new.
  using Fetch = std::function<Outcome<std::string>(const std::string& link, std::uint64_t offset)>;

  GangStream(std::string file, Look look, Fetch fetch, std::function<void(const std::string&)> say);
  Outcome<int> run();

 private:
  struct File {
    std::string link;
    std::uint64_t done = 0;
    LineWriter lines;
  };
  Outcome<bool> copy_new();  // whether there was anything
  void add(const Seen& seen);

  std::string file_;
  Look look_;
  Fetch fetch_;
  std::function<void(const std::string&)> say_;
  SharedOutput output_;
  std::map<std::string, File> files_;
};

}  // namespace slipway::cli::az
