#pragma once
// The tree of commands as it is typed: words, arguments and flags, bound to the values they fill. A thin
// layer over CLI11, so that sizes, durations, help and mistakes look the same in every command.
//
//   auto options = std::make_shared<Resize>();
//   pool.verb("resize", "Change how many nodes a pool keeps up", "slipway pool resize lab --nodes 4")
//       .argument("POOL", options->pool, "the pool")
//       .number("--nodes N", options->nodes, "how many", Need::required)
//       .runs([options, &context] { return resize(context, *options); });
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/quantity.h"
#include "cli/client/settings.h"
#include "cli/output/failure.h"

namespace slipway::cli {

using Action = std::function<Outcome<int>()>;

enum class Need { optional, required };

struct FlagWords {
  std::vector<std::string> names;  // -f, --follow
  std::string value;               // N in --nodes N; empty for a switch
  std::string about;
  bool required = false;
  bool common = false;              // one of Settings
  std::vector<std::string> values;  // where only these are taken
};
struct ArgumentWords {
  std::string name;  // POOL
  std::string about;
  bool required = true;
};
// One place in the tree, for help and completion scripts.
struct CommandWords {
  std::string path;  // slipway pool create
  std::string name;  // create
  std::string about;
  std::string example;
  bool hidden = false;
  bool azure = false;  // behaves as a command of `az`; help lists these last
  std::vector<FlagWords> flags;
  std::vector<ArgumentWords> arguments;
  std::vector<const CommandWords*> commands;
};

// One command, or a noun that holds some. Flags are written as users type them: "-f,--follow", "--nodes N".
class Command {
 public:
  Command& argument(const std::string& name, std::string& value, const std::string& about,
                    Need need = Need::required);
  Command& arguments(const std::string& name, std::vector<std::string>& values, const std::string& about,
                     Need need = Need::required);
  // A command line of its own: everything after `--`, or the words that are no flags.
  Command& rest(const std::string& name, std::vector<std::string>& words, const std::string& about);
  // Every word that follows, flags and `--` among them, as it is: for what is called in another program's
  // place.
  Command& verbatim(const std::string& name, std::vector<std::string>& words, const std::string& about);

  Command& flag(const std::string& flag, bool& value, const std::string& about);
  Command& text(const std::string& flag, std::string& value, const std::string& about);
  Command& texts(const std::string& flag, std::vector<std::string>& values, const std::string& about);
  Command& word(const std::string& flag, std::string& value, const std::vector<std::string>& words,
                const std::string& about);
  Command& form(const std::string& flag, std::string& value, const std::string& about);  // of output
  Command& number(const std::string& flag, std::optional<std::uint32_t>& value, const std::string& about,
                  Need need = Need::optional);
  Command& integer(const std::string& flag, std::optional<int>& value, const std::string& about);
  Command& decimal(const std::string& flag, std::optional<double>& value, const std::string& about);
  Command& size(const std::string& flag, std::optional<Bytes>& value, const std::string& about);
  Command& duration(const std::string& flag, std::optional<Duration>& value, const std::string& about);
  Command& lists();  // the flags of every list: --watch, --columns and so on
  // Another name, not shown: what the command was called before, or is called elsewhere.
  Command& alias(const std::string& name);
  Command& hidden();
  // This command and those below it behave as those of `az`: more output forms, and a flag may be shortened
  // as far as it stays one flag's (--j for --job).
  Command& azure_compatible();
  void runs(Action action);

  Command verb(const std::string& name, const std::string& about, const std::string& example);

 private:
  friend class CommandTree;
  struct Entry;
  using Parse = std::function<Result<void>(const std::string&)>;
  explicit Command(Entry& entry) : entry_(&entry) {}
  Command& value(const std::string& flag, const std::string& about, Need need, Parse parse);
  void add_common(Settings& settings);

  Entry* entry_;
};

class CommandTree {
 public:
  explicit CommandTree(Settings& settings);
  ~CommandTree();

  // A noun with verbs below it, or a command of its own when runs() is called on it.
  Command add(const std::string& name, const std::string& about, const std::string& example);
  // The action the words ask for (which may be to print help), or what is wrong with them.
  Outcome<Action> parse(const std::vector<std::string>& words);
  const CommandWords& words() const;

 private:
  struct Wrong;
  std::optional<Wrong> fill(std::vector<std::string> reversed);
  std::pair<Command::Entry*, bool> reached() const;
  Command::Entry* take_verbatim(const std::vector<std::string>& words) const;
  std::vector<std::string> lengthened(std::vector<std::string> words) const;
  void drop_flags_of_others(const Command::Entry& entry, std::vector<std::string>& unknown) const;

  std::unique_ptr<Command::Entry> root_;
};

}  // namespace slipway::cli
