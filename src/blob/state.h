#pragma once
// What a folder and a container had in common after their last sync, in a file beside the folder:
// <folder>.sync.
//
// Lines of text, because blob names are the only thing in it that is not plain. Without it nothing is lost:
// files are compared by content, and nothing is deleted.
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "blob/plan.h"

namespace slipway::blob {

struct SyncState {
  std::string container;     // its address; of another container nothing is known
  std::uint64_t folder = 0;  // Folder::identity()
  std::vector<KnownFile> files;
  friend bool operator==(const SyncState&, const SyncState&) = default;
};

std::string format_state(const SyncState& state);
Result<SyncState> parse_state(std::string_view text);

}  // namespace slipway::blob
