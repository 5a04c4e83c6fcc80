#include <fmt/format.h>

#include <fstream>

#include "cli/commands/commands.h"
#include "wire/audit.h"

namespace slipway::cli {
namespace {

struct Options {
  std::string file;
  std::string ends_with;
};

// Reads the file itself: the service need not run, and is not asked whether it is honest.
Outcome<int> verify(Context& context, const Options& options) {
  const std::string file =
      options.file.empty() ? data_folder(context.settings()) + "/audit.jsonl" : options.file;
  std::ifstream lines(file, std::ios::binary);
  if (!lines)
    return refuse(fmt::format("{} cannot be read", file), "there is no such file, or it is not yours",
                  "slipway audit verify --file FILE");
  wire::AuditChain chain;
  bool is_found = options.ends_with.empty();
  for (std::string line; std::getline(lines, line);) {
    if (const auto followed = chain.follow(line); !followed)
      return refuse(fmt::format("{} is not as it was written from line {} on", file, chain.count() + 1),
                    followed.error().what, "compare it with a copy; the lines before are whole");
    is_found = is_found || chain.hash() == options.ends_with;
  }
  if (!is_found)
    return refuse(fmt::format("{} does not hold an entry with the hash {}", file, options.ends_with),
                  "it was cut off before it, or the hash is of another log", "compare it with a copy");
  const Value value = {
      {"file", file}, {"entries", Value(static_cast<double>(chain.count()))}, {"hash", chain.hash()}};
  return print(context, value, chain.hash(),
               fmt::format("{}: {} entries, each as it was written; the last has the hash {}\n", file,
                           chain.count(), chain.hash()));
}

}  // namespace

void add_audit(CommandTree& tree, Context& context) {
  auto options = std::make_shared<Options>();
  tree.add("audit", "The log of what was changed and denied", "slipway audit verify")
      .verb("verify", "Check that no line of the log was changed, taken out or put in",
            "slipway audit verify")
      .text("--file FILE", options->file, "the log (default: audit.jsonl of the data folder)")
      .text("--has HASH", options->ends_with, "and that it still holds the entry with this hash")
      .runs([&context, options] { return verify(context, *options); });
}

}  // namespace slipway::cli
