#pragma once
// The second half of a rule that names the owner (domain/access.h): the thing was found, so whose it is is
// known. Every function here that changes an owned thing asks, whichever API it is called by.
#include <string>
#include <string_view>

#include "base/result.h"
#include "control/settings.h"
#include "domain/access.h"

namespace slipway::control {

// `thing` is named in the refusal: job_3.
Result<void> permit(const Caller& caller, const Access& access, std::string_view thing,
                    std::string_view owner);

// The user of the machine that what this user has made runs as; nobody where no rule names it any more.
std::optional<RunAs> run_as_of(const Settings& settings, const std::string& workspace,
                               const std::string& user);
// Where jobs run as users, the commands of mounts, which run as the agent does, are for admins.
Result<void> may_run(const Settings& settings, const Caller& caller, const std::vector<Mount>& mounts);

}  // namespace slipway::control
