#include "container/view.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "base/file.h"
#include "container/execute.h"
#include "container/namespaces.h"
#include "container/parent_death.h"

namespace slipway::container {
namespace {

// The longest part of the path that is there.
std::string standing_part(std::string path) {
  std::error_code error;
  while (path.size() > 1 && !std::filesystem::is_directory(path, error)) {
    const std::size_t slash = path.rfind('/');
    path = slash == 0 ? "/" : path.substr(0, slash);
  }
  return path;
}

Result<void> show(const std::string& source, const std::string& target, bool read_only = false) {
  if (::mount(source.c_str(), target.c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0)
    return fail(system_error(fmt::format("cannot show {} at {}", source, target), errno));
  if (read_only && ::mount(nullptr, target.c_str(), nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr) != 0)
    return fail(system_error(fmt::format("cannot make {} read-only", target), errno));
  return {};
}

// One entry of a covered folder, made again on top of it.
Result<void> repeat(const std::string& below, const std::string& at) {
  struct stat status {};
  if (::lstat(below.c_str(), &status) != 0) return {};  // gone meanwhile
  if (S_ISLNK(status.st_mode)) {
    char target[PATH_MAX + 1];
    const ssize_t size = ::readlink(below.c_str(), target, PATH_MAX);
    if (size < 0) return {};
    target[size] = '\0';
    return ::symlink(target, at.c_str()) == 0 || errno == EEXIST
               ? Result<void>()
               : fail(system_error("cannot make the link " + at, errno));
  }
  if (S_ISDIR(status.st_mode)) {
    if (::mkdir(at.c_str(), 0755) != 0 && errno != EEXIST)
      return fail(system_error("cannot make " + at, errno));
  } else {
    const Fd file(::open(at.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    if (!file) return fail(system_error("cannot make " + at, errno));
  }
  return show(below, at);
}

// Makes `root` exist for this process without changing the machine.
Result<void> make_root(const std::string& root, const std::optional<MountAccess>& access) {
  const std::string standing = standing_part(root);
  if (standing == root) return {};
  const Fd below(::open(standing.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!below) return fail(system_error("cannot open " + standing, errno));
  const std::string options = access && ::geteuid() == 0
                                  ? fmt::format("mode=755,uid={},gid={}", access->uid, access->gid)
                                  : "mode=755";
  if (::mount("tmpfs", standing.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, options.c_str()) != 0)
    return fail(refused("mount in a namespace", errno));
  const std::string covered = fmt::format("/proc/self/fd/{}", below.get());
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(covered.c_str()), ::closedir);
  if (!entries) return fail(system_error("cannot read " + standing, errno));
  while (const dirent* entry = ::readdir(entries.get())) {
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    if (auto done = repeat(covered + "/" + name, standing + "/" + name); !done) return done;
  }
  return make_folders(root);
}

}  // namespace

Result<void> show_view(const ViewPlan& plan, const std::optional<MountAccess>& access) {
  // What is shown may lie below what is covered: held open, it stays within reach.
  std::vector<Fd> sources;
  sources.reserve(plan.mounts.size() + 1);
  const auto hold = [&](Result<Fd> opened) -> Result<std::string> {
    if (!opened) return fail(opened.error());
    sources.push_back(std::move(*opened));
    return fmt::format("/proc/self/fd/{}", sources.back().get());
  };
  const auto opened = [](const std::string& path) -> Result<Fd> {
    Fd fd(::open(path.c_str(), O_PATH | O_CLOEXEC));
    if (!fd) return fail(system_error("cannot open " + path, errno));
    return fd;
  };
  const Result<std::string> tree = hold(opened(plan.tree));
  if (!tree) return fail(tree.error());
  std::vector<std::string> held;
  held.reserve(plan.mounts.size());
  for (const ViewPlan::Mount& mount : plan.mounts) {
    Result<std::string> source = hold(access ? open_source(mount.source, *access) : opened(mount.source));
    if (!source) return fail(source.error());
    held.push_back(std::move(*source));
  }
  std::optional<UserAccess> user;
  if (access) user.emplace(access->uid, access->gid);
  if (auto made = make_root(plan.root, access); !made) return made;
  if (auto shown = show(*tree, plan.root); !shown) return shown;
  for (std::size_t i = 0; i < plan.mounts.size(); ++i) {
    const std::string target = plan.root + "/" + plan.mounts[i].at;
    if (auto made = make_folders(target); !made) return made;
    if (auto shown = show(held[i], target, plan.mounts[i].read_only); !shown) return shown;
  }
  return {};
}

std::string format(const ViewPlan& plan) {
  std::string text = plan.root + "\n" + plan.tree + "\n";
  for (const ViewPlan::Mount& mount : plan.mounts)
    text += fmt::format("{}\t{}\t{}\n", mount.at, mount.source, mount.read_only ? "ro" : "rw");
  return text;
}

std::optional<ViewPlan> parse_view(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  if (lines.size() < 2) return std::nullopt;
  ViewPlan plan{std::string(lines[0]), std::string(lines[1]), {}};
  for (std::size_t i = 2; i < lines.size(); ++i) {
    const std::size_t first = lines[i].find('\t'), second = lines[i].rfind('\t');
    if (first == std::string_view::npos || first == second) return std::nullopt;
    plan.mounts.push_back({std::string(lines[i].substr(0, first)),
                           std::string(lines[i].substr(first + 1, second - first - 1)),
                           lines[i].substr(second + 1) == "ro"});
  }
  return plan;
}

bool can_view(const std::string& root) {
  const char* forbidden = std::getenv("SLIPWAY_NO_NAMESPACES");
  if (forbidden != nullptr && *forbidden != '\0') return false;
  return standing_part(root) != "/" && can_unshare_mounts();
}

int view(const std::vector<std::string>& command) {
  const ParentDeath parent_death;
  const Environment environment = read_environment();
  const auto text = environment.find(view_variable);
  const auto report = [](const Error& error) {
    std::fprintf(stderr, "error: %s%s%s\n", error.what.c_str(), error.hint.empty() ? "" : "; ",
                 error.hint.c_str());
    return error.code == ErrorCode::not_found ? 127 : 126;
  };
  if (text != environment.end() && !text->second.empty()) {
    const std::optional<ViewPlan> plan = parse_view(text->second);
    if (!plan) return report({ErrorCode::internal, "SLIPWAY_VIEW cannot be read", ""});
    char folder[PATH_MAX];
    const bool has_folder = ::getcwd(folder, sizeof folder) != nullptr;
    const auto entered = unshare_mounts().and_then([&] { return show_view(*plan, {}); });
    if (!entered) {
      Error error = entered.error();
      error.code = ErrorCode::internal;  // the command may well be there
      return report(error);
    }
    if (has_folder && ::chdir(folder) != 0)  // by its path: it may be one that is shown anew
      return report(system_error(fmt::format("cannot enter {}", folder), errno));
    parent_death.restore();
  }
  return report(execute(command, environment, "on this node"));
}

}  // namespace slipway::container
