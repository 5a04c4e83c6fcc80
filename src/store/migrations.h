#pragma once
// The files of migrations/ in order; the database's user_version says how many of them it has had.
#include <vector>

namespace slipway::store {
const std::vector<const char*>& migrations();
}
