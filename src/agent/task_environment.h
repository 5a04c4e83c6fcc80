#pragma once
// What an attempt finds on its node besides its code: mounts, folders, files, and a second home for what it
// prints.
//
// Where the machine allows namespaces each process sees its mounts under a path of its own (`slipway node
// view`); elsewhere the same tree is built of links under the data folder, and that path is put in the mount
// of the other wherever an order names it.
//
// For a user of the machine (RunAs) folders, files and logs are made with the rights of that user: what they
// name, and every link in it, is the user's choice.
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/order.h"
#include "base/clock.h"
#include "base/result.h"
#include "container/user_access.h"
#include "container/view.h"
#include "domain/protocol.h"

namespace slipway::agent {

class TaskEnvironment {
 public:
  // `has_namespaces`: whether processes can have views. Both are kept by reference.
  TaskEnvironment(const View& view, const NodeContext& context, bool has_namespaces,
                  const std::optional<RunAs>& user = {});

  // Where a path under the root really lies.
  std::string real(std::string_view path) const;
  // What SLIPWAY_VIEW should say; empty without namespaces.
  std::string plan() const;
  // A text of an order: without namespaces with the real tree in the mount of the root.
  std::string translate(std::string text) const;
  // One line for the file that says what the node did, where there is one. What cannot be written is not
  // worth failing for.
  void note(TimePoint now, std::string_view text) const;

  // Brings what is to be mounted, makes folders and files. May take long.
  Result<void> lay_out() const;
  // Makes the streams of processes files of the logs folder too. `attempt`: their folder.
  Result<void> link_logs(const std::string& attempt, const std::vector<ProcessStart>& processes) const;
  // Where a mount really lies.
  std::string source_of(const View::Mount& mount) const;

 private:
  Result<void> make_own_folders() const;
  Result<void> make(const View::Mount& mount) const;
  Result<void> run_mount(const View::Mount& mount, const std::string& at) const;
  Result<void> pull(const View::Mount& mount) const;
  Result<void> make_folders_and_files() const;
  Result<Fd> open_tree() const;
  // As open_source() wants it.
  std::string source_for_user(const View::Mount& mount) const;
  // A folder under the root, made where it is not there.
  Result<Fd> open_folder(const std::string& path) const;
  const View::Mount* innermost(std::string_view inside) const;
  std::optional<container::UserAccess> as_user() const;

  const View& view_;
  const NodeContext& context_;
  bool has_namespaces_;
  std::string tree_;
  std::optional<container::MountAccess> user_;
};

// Where mount commands put things: never in a folder that is deleted with its job, and all that is in it.
std::string mounts_folder(const View& view, const NodeContext& context);
// Takes off what is mounted under this folder, and the empty folders that are left.
void unmount_under(const std::string& folder);

}  // namespace slipway::agent
