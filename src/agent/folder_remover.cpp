#include "agent/folder_remover.h"

#include "base/folder_removal.h"
#include "base/log.h"
#include "domain/layout.h"

namespace slipway::agent {
namespace {

constexpr std::size_t entries_at_once = 1'000;

}  // namespace

void FolderRemover::remove(const std::string& data, const std::string& folder) {
  if (!is_job_folder(folder)) {
    log::error("node.folder_not_removed", {{"folder", folder}, {"why", "it is not the folder of a job"}});
    return;
  }
  const bool posted = worker_.post([this, data, folder](const std::stop_token& stop) {
    for (;;) {
      const Result<bool> more = remove_some(data + "/" + folder, entries_at_once);
      if (!more)
        return log::error("node.folder_not_removed", {{"folder", folder}, {"why", more.error().what}});
      if (!*more) break;
      if (stop.stop_requested()) return;
    }
    loop_.post([this, folder] { removed_(folder); });
  });
  if (!posted) log::warning("node.folder_not_removed", {{"folder", folder}, {"why", "too many wait"}});
}

}  // namespace slipway::agent
