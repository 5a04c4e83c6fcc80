#pragma once
// Folders with the secrets that processes get as files: made before the start, gone when the last process has
// ended, whoever is killed in between. Each is noted in the agent's own folder before it is made; the note
// goes after it, so that the next agent finds what is left.
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "domain/run_as.h"
#include "domain/work_key.h"

namespace slipway::agent {

class SecretFolders {
 public:
  explicit SecretFolders(std::string notes) : notes_(std::move(notes)) {}

  // Files of mode 0600 in a folder of mode 0700; of the user, where there is one and the agent is root.
  using Files = std::vector<std::pair<std::string, std::string>>;  // name, content
  Result<void> write(const WorkKey& key, const std::string& folder, const Files& files,
                     const std::optional<RunAs>& owner) const;
  void remove(const WorkKey& key) const;
  // Those of all work but this.
  void remove_others(const std::set<WorkKey>& live) const;

 private:
  std::string note_of(const WorkKey& key) const;
  void remove_noted(const std::string& note) const;
  std::string notes_;  // a folder
};

}  // namespace slipway::agent
