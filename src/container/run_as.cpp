#include "container/run_as.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "base/file.h"
#include "container/apart.h"
#include "container/execute.h"
#include "container/give_folder.h"
#include "container/namespaces.h"
#include "container/parent_death.h"
#include "container/user_access.h"
#include "container/view.h"

namespace slipway::container {
namespace {

int say(const Error& error) {
  std::fprintf(stderr, "error: %s%s%s\n", error.what.c_str(), error.hint.empty() ? "" : "; ",
               error.hint.c_str());
  return error.code == ErrorCode::not_found ? 127 : 126;
}

Error impossible(std::string what, std::string hint = {}) {
  return {ErrorCode::internal, std::move(what), std::move(hint)};
}

Result<void> own_mounts() {
  if (::unshare(CLONE_NEWNS) == 0 && ::mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) == 0)
    return {};
  return fail(refused("make a mount namespace", errno));
}

// Where the machine allows it: without, processes of others are seen, but neither read nor signalled.
void hide_processes() { ::mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, "hidepid=2"); }

// The user's variables, and the plan of what is mounted.
struct Given {
  Environment environment;
  std::optional<ViewPlan> view;
};
Result<Given> read_given() {
  Given given;
  Environment own = read_environment();
  if (const auto text = own.find(view_variable); text != own.end()) {
    given.view = parse_view(text->second);
    if (!given.view) return fail(impossible("SLIPWAY_VIEW cannot be read"));
    own.erase(text);
  }
  for (const auto& [name, value] : own)
    if (name.starts_with(user_variable_prefix))
      given.environment.try_emplace(name.substr(user_variable_prefix.size()), value);
  for (const auto& [name, value] : own)
    if (!name.starts_with(user_variable_prefix)) given.environment[name] = value;
  return given;
}

Result<void> change_ids(uid_t uid, gid_t gid, const std::vector<gid_t>& groups) {
  for (int capability = 0; ::prctl(PR_CAPBSET_READ, capability) >= 0; ++capability)
    if (::prctl(PR_CAPBSET_DROP, capability) != 0)
      return fail(system_error("cannot give up a capability", errno));
  if (::setgroups(groups.size(), groups.data()) != 0 || ::setresgid(gid, gid, gid) != 0 ||
      ::setresuid(uid, uid, uid) != 0)
    return fail(system_error(fmt::format("cannot become user {}:{}", uid, gid), errno));
  ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  const __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {};
  if (::syscall(SYS_capset, &header, none) != 0)
    return fail(system_error("cannot give up capabilities", errno));
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    return fail(system_error("cannot give up new privileges", errno));
  return {};
}

void set_user(Environment& environment, uid_t uid, const std::string& folder) {
  const passwd* user = ::getpwuid(uid);
  const std::string name = user ? user->pw_name : std::to_string(uid);
  environment.try_emplace("HOME", user && ::access(user->pw_dir, X_OK) == 0 ? user->pw_dir : folder);
  environment.try_emplace("USER", name);
  environment.try_emplace("LOGNAME", name);
}

Result<void> as_root(const RunAsOptions& options, const std::string& folder,
                     const std::optional<ViewPlan>& view) {
  // Before anything of the user's is mounted, which may be over /etc.
  const std::vector<gid_t> groups = groups_of(options.uid, options.gid);
  if (!options.workspace.empty())
    if (auto passes = let_through(options.workspace, options.uid); !passes) return passes;
  // Of the folder that holds the streams and what the agent writes the user changes nothing.
  if (auto shown = show_folder(options.attempt, options.gid); !shown) return shown;
  for (const std::string& own : options.own)
    if (auto given = give_folder(own, options.uid, options.gid, {.with_content = false}); !given)
      return given;
  for (const std::string& own : options.given)
    if (auto given = give_folder(own, options.uid, options.gid, {.with_content = true}); !given) return given;
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) give_stream(stream, options.uid, options.gid);
  const Result<void> own = own_mounts();
  if (own) hide_processes();
  if (view) {
    if (!own) return own;
    const MountAccess access{options.uid, options.gid, options.data};
    if (auto shown = show_view(*view, access); !shown) return shown;
  }
  // Into the same folder, by the mounts that are there now; and as the user, who has to reach it.
  if (auto changed = change_ids(options.uid, options.gid, groups); !changed) return changed;
  if (::chdir(folder.c_str()) == 0) return {};
  const int failed = errno;
  const std::string closed = closed_on_the_way(options.data);
  return fail(impossible(
      fmt::format("user {} cannot reach {}: {}{}", options.uid, folder,
                  closed.empty() ? "" : "users cannot go through " + closed + ": ", std::strerror(failed)),
      "every folder on the way has to let users through (chmod o+x), as /var/lib does and /root does not"));
}

Result<void> as_ourselves(const RunAsOptions& options, const std::optional<ViewPlan>& view) {
  if (!view) return {};
  if (auto unshared = unshare_mounts(); !unshared) return unshared;
  return show_view(*view, MountAccess{::geteuid(), ::getegid(), options.data});
}

}  // namespace

int run_as(const RunAsOptions& options) {
  const ParentDeath parent_death;
  Result<Given> given = read_given();
  if (!given) return say(given.error());
  std::error_code error;
  const std::string folder = std::filesystem::current_path(error).string();
  if (error) return say(impossible("the working folder is gone: " + error.message()));
  const bool is_root = ::geteuid() == 0;
  set_user(given->environment, is_root ? options.uid : ::geteuid(), folder);
  const auto done = is_root ? as_root(options, folder, given->view) : as_ourselves(options, given->view);
  if (!done) {
    Error failure = done.error();
    failure.code = ErrorCode::internal;  // the command may well be there
    return say(failure);
  }
  parent_death.restore();
  const auto command = [&] { return say(execute(options.command, given->environment, "on this node")); };
  if (is_root) return command();
  std::vector<std::string> shown = options.own;
  shown.insert(shown.begin(), options.attempt);
  shown.insert(shown.end(), options.given.begin(), options.given.end());
  return run_apart({options.data, std::move(shown), folder}, command);
}

std::vector<std::string> run_as_notes() {
  if (::geteuid() == 0) return {};
  if (!can_run_apart())
    return {
        "no run-as: the agent is not root, and user and PID namespaces are not allowed here; jobs of a "
        "service with --run-as do not start"};
  return {
      fmt::format("run-as without root: jobs keep uid {}; namespaces hide the processes of other jobs and "
                  "their files below the data folder, and nothing else that this user can read",
                  ::geteuid())};
}

std::string closed_on_the_way(const std::string& folder) {
  std::string closed;
  for (std::filesystem::path at = folder; at.has_relative_path(); at = at.parent_path()) {
    struct stat status {};
    if (::stat(at.c_str(), &status) == 0 && (status.st_mode & 0001) == 0) closed = at.string();
  }
  return closed;
}

}  // namespace slipway::container
