#include "cli/az/defaults.h"

#include <strings.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/file.h"
#include "cli/client/service.h"
#include "wire/value.h"

namespace slipway::cli::az {

bool same_word(std::string_view one, std::string_view other) {
  return one.size() == other.size() && ::strncasecmp(one.data(), other.data(), one.size()) == 0;
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

Outcome<Defaults> Defaults::load(const Settings& settings) {
  Defaults defaults;
  defaults.path_ = data_folder(settings) + "/az-defaults.json";
  if (::access(defaults.path_.c_str(), F_OK) != 0) return defaults;
  const Result<std::string> text = read_file(defaults.path_);
  if (!text) return give_up(text);
  const std::optional<Value> file = wire::parse_answer(*text);
  if (!file)
    return refuse("the defaults cannot be read", defaults.path_ + " is not JSON", "repair it, or remove it");
  for (const auto& [key, unused] : file->at("defaults").fields)
    defaults.values_[key] = file->at("defaults").text_at(key);
  for (const Value& group : file->items_at("groups"))
    defaults.groups_.push_back({group.text_at("name"), group.text_at("location")});
  for (const Value& account : file->items_at("accounts"))
    defaults.accounts_.push_back({account.text_at("name"), account.text_at("group"),
                                  account.text_at("location"), account.text_at("key"),
                                  account.text_at("second_key")});
  return defaults;
}

Outcome<void> Defaults::save() const {
  Value file{{"defaults", Value::map()}, {"groups", Value::list()}};
  for (const auto& [name, value] : values_) file["defaults"][name] = value;
  for (const Group& group : groups_)
    file["groups"].items.push_back({{"name", group.name}, {"location", group.location}});
  if (!accounts_.empty()) file["accounts"] = Value::list();
  for (const Account& one : accounts_)
    file["accounts"].items.push_back({{"name", one.name},
                                      {"group", one.group},
                                      {"location", one.location},
                                      {"key", one.key},
                                      {"second_key", one.second_key}});
  if (const auto made = make_folders(path_.substr(0, path_.rfind('/')), 0700); !made) return give_up(made);
  const std::string text = wire::format_json_indented(file) + "\n";
  if (const auto written = write_file_durably(path_, text, 0600); !written) return give_up(written);
  return {};
}

std::string Defaults::value(const std::string& name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? "" : found->second;
}

void Defaults::set(const std::string& name, const std::string& value) {
  if (value.empty())
    values_.erase(name);
  else
    values_[name] = value;
}

std::optional<Group> Defaults::group(const std::string& name) const {
  for (const Group& group : groups_)
    if (same_word(group.name, name)) return group;
  return std::nullopt;
}

void Defaults::add_group(const Group& group) {
  remove_group(group.name);
  groups_.push_back(group);
}

std::optional<Account> Defaults::account(const std::string& name) const {
  for (const Account& account : accounts_)
    if (same_word(account.name, name)) return account;
  return std::nullopt;
}

void Defaults::add_account(const Account& account) {
  remove_account(account.name);
  accounts_.push_back(account);
}

bool Defaults::remove_account(const std::string& name) {
  return std::erase_if(accounts_, [&](const Account& one) { return same_word(one.name, name); }) > 0;
}

bool Defaults::remove_group(const std::string& name) {
  return std::erase_if(groups_, [&](const Group& group) { return same_word(group.name, name); }) > 0;
}

}  // namespace slipway::cli::az
