#pragma once
// The Store in one SQLite file: WAL, synchronous=FULL, one transaction for each save.
#include <memory>
#include <string>

#include "control/store.h"

namespace slipway::store {

// The database and its folder know each other: the same random service id is in both, and the folder knows
// how far its database had come. One that is missing, emptied, of another service or older is refused
// (`conflict`), unless:
enum class OpenAs {
  usual,
  made_anew,  // what is there is moved aside; ids continue where the folder's end
  with_loss   // what is there is the truth now, and the turns it lacks are lost
};
Result<std::unique_ptr<control::Store>> open_sqlite(const std::string& path, OpenAs as = OpenAs::usual);

}  // namespace slipway::store
