#pragma once
// The Store in one SQLite file: WAL, synchronous=FULL, one transaction for each save.
#include <memory>
#include <string>

#include "control/store.h"

namespace slipway::store {

Result<std::unique_ptr<control::Store>> open_sqlite(const std::string& path);

}  // namespace slipway::store
