#pragma once
// Secrets by name: set, deleted, and given to the tasks that ask for them. Values come sealed and stay so.
#include <vector>

#include "control/turn.h"

namespace slipway::control {

// Of a user by that user or an admin; of the workspace (no user) by admins. A new value is used by the next
// attempt.
Result<SecretRecord> set_secret(Turn& turn, const Caller& caller, const SecretKey& key, std::string sealed);
Result<void> delete_secret(Turn& turn, const Caller& caller, const SecretKey& key);

// What a job of this user means by the name; nullptr: nothing.
const SecretRecord* find_secret(const State& state, const std::string& workspace, const std::string& user,
                                const std::string& name);
// Whether all that the job asks for is there.
Result<void> check_secrets(const State& state, const Caller& caller, const JobSpec& spec);
// As they are now; of one that was deleted since, without a value.
std::vector<GivenSecret> given_secrets(const State& state, const JobRecord& job, const TaskSpec& spec);

}  // namespace slipway::control
