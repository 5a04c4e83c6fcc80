#pragma once
// What `slipway configure --defaults`, `slipway group create` and `slipway storage account create` keep, in
// az-defaults.json of the slipway folder, which only its user can read.
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/commands/command.h"
#include "cli/output/failure.h"

namespace slipway::cli::az {

struct Group {  // a label: resources name one, and nothing else is behind it
  std::string name;
  std::string location;
};

// A storage account is a name and a key: its shares and containers are the datastores NAME.file.SHARE and
// NAME.blob.CONTAINER, which ask for no key. The key is made with it, so that scripts have one to pass on.
struct Account {
  std::string name;
  std::string group;
  std::string location;
  std::string key;         // key1
  std::string second_key;  // key2
};

class Defaults {
 public:
  // An absent file has nothing in it; one that cannot be read is an error, as it would be overwritten.
  static Outcome<Defaults> load(const Settings& settings);
  Outcome<void> save() const;

  std::string value(const std::string& name) const;  // group, workspace, location …; empty when not set
  void set(const std::string& name, const std::string& value);  // an empty value takes it away
  const std::map<std::string, std::string>& values() const { return values_; }

  const std::vector<Group>& groups() const { return groups_; }
  std::optional<Group> group(const std::string& name) const;  // without regard to case
  void add_group(const Group& group);
  bool remove_group(const std::string& name);

  const std::vector<Account>& accounts() const { return accounts_; }
  std::optional<Account> account(const std::string& name) const;
  void add_account(const Account& account);
  bool remove_account(const std::string& name);

 private:
  std::string path_;
  std::map<std::string, std::string> values_;
  std::vector<Group> groups_;
  std::vector<Account> accounts_;
};

bool same_word(std::string_view one, std::string_view other);  // without regard to case
std::string environment(const char* name);                     // empty when not set

}  // namespace slipway::cli::az
