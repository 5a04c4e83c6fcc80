#pragma once
// Mounts as tasks and pools write them: {at: data, datastore: mnist}. Included in .cpp files only.
#include <vector>

#include "domain/job.h"
#include "wire/document.h"
#include "wire/json.h"

namespace slipway::wire {

Json mounts_json(const std::vector<Mount>& mounts);
// Under the key `mounts`; none where it is absent.
std::vector<Mount> read_mounts(FieldReader& reader);

}  // namespace slipway::wire
