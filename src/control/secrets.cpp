#include "control/secrets.h"

#include <fmt/format.h>

#include <algorithm>

#include "control/permit.h"

namespace slipway::control {
namespace {

std::string set_command(const SecretKey& key) {
  return fmt::format("slipway secret set {}{}", key.name, key.user.empty() ? " --scope workspace" : "");
}

std::size_t names_of(const State& state, const SecretKey& key) {
  const auto first = state.secrets.lower_bound({key.workspace, key.user, {}});
  return static_cast<std::size_t>(std::count_if(first, state.secrets.end(), [&](const auto& one) {
    return one.first.workspace == key.workspace && one.first.user == key.user;
  }));
}

void forget_change(Turn& turn, const SecretKey& key) {
  std::erase_if(turn.effects.changes.secrets, [&](const SecretRecord& one) { return one.key == key; });
  std::erase(turn.effects.changes.secrets_removed, key);
}

}  // namespace

Result<SecretRecord> set_secret(Turn& turn, const Caller& caller, const SecretKey& key, std::string sealed) {
  if (auto named = validate_name("secret", key.name); !named) return fail(named.error());
  if (auto may = permit(caller, {Object::secret, Verb::update}, describe(key), key.user); !may)
    return fail(may.error());
  const auto known = turn.state.secrets.find(key);
  if (known == turn.state.secrets.end() && names_of(turn.state, key) >= SecretLimits::names_max)
    return fail(
        ErrorCode::conflict,
        fmt::format("{} has {} secrets, and that is the most",
                    key.user.empty() ? "workspace " + key.workspace : key.user, SecretLimits::names_max),
        "delete one that no job uses: slipway secret delete NAME");
  SecretRecord& record = turn.state.secrets[key];
  record.key = key;
  if (!record.sealed.empty()) record.earlier.insert(record.earlier.begin(), std::move(record.sealed));
  record.earlier.resize(std::min(record.earlier.size(), SecretLimits::earlier_max));
  record.sealed = std::move(sealed);
  record.author = caller.name;
  record.changed_at = turn.now;
  forget_change(turn, key);
  turn.effects.changes.secrets.push_back(record);
  record_event_in(turn, key.workspace, "secret.set", fmt::format("{} set {}", caller.name, describe(key)), {},
                  {});
  return record;
}

Result<void> delete_secret(Turn& turn, const Caller& caller, const SecretKey& key) {
  if (!turn.state.secrets.contains(key))
    return fail(ErrorCode::not_found, fmt::format("there is no {}", describe(key)),
                "slipway secret list shows those there are");
  if (auto may = permit(caller, {Object::secret, Verb::remove}, describe(key), key.user); !may) return may;
  turn.state.secrets.erase(key);
  forget_change(turn, key);
  turn.effects.changes.secrets_removed.push_back(key);
  record_event_in(turn, key.workspace, "secret.deleted",
                  fmt::format("{} deleted {}", caller.name, describe(key)), {}, {});
  return {};
}

const SecretRecord* find_secret(const State& state, const std::string& workspace, const std::string& user,
                                const std::string& name) {
  for (const std::string& whose : {user, std::string()})
    if (const auto found = state.secrets.find({workspace, whose, name}); found != state.secrets.end())
      return &found->second;
  return nullptr;
}

Result<void> check_secrets(const State& state, const Caller& caller, const JobSpec& spec) {
  for (const TaskSpec& task : spec.tasks)
    for (const auto& [variable, ref] : task.secret_refs)
      if (!find_secret(state, caller.workspace, caller.name, ref.from))
        return fail(ErrorCode::invalid,
                    fmt::format("task {} asks for secret {} in {}, and neither {} nor workspace {} has one",
                                task.name, ref.from, variable, caller.name, caller.workspace),
                    set_command({caller.workspace, caller.name, ref.from}));
  return {};
}

std::vector<GivenSecret> given_secrets(const State& state, const JobRecord& job, const TaskSpec& spec) {
  std::vector<GivenSecret> given;
  for (const auto& [variable, ref] : spec.secret_refs) {
    const SecretRecord* secret = find_secret(state, job.workspace, job.submitted_by, ref.from);
    given.push_back({variable, secret ? secret->key : SecretKey{job.workspace, job.submitted_by, ref.from},
                     secret ? secret->sealed : std::string(), ref.file});
  }
  return given;
}

}  // namespace slipway::control
