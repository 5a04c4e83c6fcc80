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
#include <climits>
#include <cstdio>
#include <filesystem>

#include "base/file.h"
#include "container/apart.h"
#include "container/execute.h"
#include "container/give_folder.h"
#include "container/namespaces.h"
#include "container/parent_death.h"

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

// Where the machine allows it: without, processes of others are seen, but neither read nor signalled.
void hide_processes() {
  if (::unshare(CLONE_NEWNS) != 0) return;
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0) return;
  ::mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, "hidepid=2");
}

Result<void> change_ids(uid_t uid, gid_t gid) {
  for (int capability = 0; ::prctl(PR_CAPBSET_READ, capability) >= 0; ++capability)
    if (::prctl(PR_CAPBSET_DROP, capability) != 0)
      return fail(system_error("cannot give up a capability", errno));
  std::vector<gid_t> groups{gid};
  if (const passwd* user = ::getpwuid(uid); user != nullptr && user->pw_gid == gid) {
    int count = NGROUPS_MAX;
    groups.resize(static_cast<std::size_t>(count));
    if (::getgrouplist(user->pw_name, gid, groups.data(), &count) < 0) count = 1;
    groups.resize(static_cast<std::size_t>(count));
  }
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

Result<void> as_root(const RunAsOptions& options, const std::string& folder) {
  // Of the folder that holds the streams and what the agent writes the user changes nothing.
  if (auto shown = show_folder(options.attempt, options.gid); !shown) return shown;
  for (const std::string& own : options.own)
    if (auto given = give_folder(own, options.uid, options.gid, {.with_content = false}); !given)
      return given;
  for (const std::string& own : options.given)
    if (auto given = give_folder(own, options.uid, options.gid, {.with_content = true}); !given) return given;
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) give_stream(stream, options.uid, options.gid);
  hide_processes();
  // Into the same folder, by the mounts that are there now; and as the user, who has to reach it.
  if (auto changed = change_ids(options.uid, options.gid); !changed) return changed;
  if (::chdir(folder.c_str()) == 0) return {};
  return fail(impossible(
      fmt::format("user {} cannot reach {}: {}", options.uid, folder, std::strerror(errno)),
      "every folder on the way has to let users through (chmod o+x), as /var/lib does and /root does not"));
}

}  // namespace

int run_as(const RunAsOptions& options) {
  const ParentDeath parent_death;
  Environment environment = read_environment();
  std::error_code error;
  const std::string folder = std::filesystem::current_path(error).string();
  if (error) return say(impossible("the working folder is gone: " + error.message()));
  if (::geteuid() != 0) {
    set_user(environment, ::geteuid(), folder);
    std::vector<std::string> shown = options.own;
    shown.insert(shown.begin(), options.attempt);
    shown.insert(shown.end(), options.given.begin(), options.given.end());
    return run_apart({options.data, std::move(shown), folder},
                     [&] { return say(execute(options.command, environment, "on this node")); });
  }
  if (auto done = as_root(options, folder); !done) {
    Error failure = done.error();
    failure.code = ErrorCode::internal;  // the command may well be there
    return say(failure);
  }
  parent_death.restore();
  set_user(environment, options.uid, folder);
  return say(execute(options.command, environment, "on this node"));
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

}  // namespace slipway::container
