#include "control/find_job.h"

#include <fmt/format.h>

namespace slipway::control {

namespace {

template <class AnyStore>
Result<JobRecord> find_in(AnyStore& store, const std::string& workspace, const std::string& id_or_name) {
  if (const auto id = parse_job_id(id_or_name)) {
    auto record = store.job(*id);
    if (!record) return fail(record.error());
    if (*record && (*record)->workspace == workspace) return **record;
    return fail(ErrorCode::not_found, fmt::format("there is no {}", id_or_name),
                "slipway job list shows the jobs");
  }
  auto named =
      store.jobs({.workspace = workspace, .state = {}, .name = id_or_name, .before = {}, .limit = 1});
  if (!named) return fail(named.error());
  if (!named->empty()) return named->front();
  return fail(ErrorCode::not_found, fmt::format("there is no job called '{}'", id_or_name.substr(0, 200)),
              "slipway job list shows the jobs");
}

}  // namespace

Result<JobRecord> find_job(Store& store, const std::string& workspace, const std::string& id_or_name) {
  return find_in(store, workspace, id_or_name);
}
Result<JobRecord> find_job(ReadStore& store, const std::string& workspace, const std::string& id_or_name) {
  return find_in(store, workspace, id_or_name);
}

}  // namespace slipway::control
