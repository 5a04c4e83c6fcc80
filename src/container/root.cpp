#include "container/root.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>

#include "base/file.h"
#include "container/namespaces.h"

namespace slipway::container {
namespace {

std::string real_path(const std::string& path) {
  std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr), std::free);
  return real ? real.get() : path;
}

bool is_there(const std::string& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0;
}

// A folder of the machine that can be covered while the tree is built: none of what goes into the tree may
// lie in it, nor it in that.
Result<std::string> building_site(const std::string& rootfs, const std::vector<Share>& shares) {
  std::vector<std::string> used{real_path(rootfs)};
  for (const Share& share : shares) used.push_back(real_path(share.path));
  for (const char* name : {"/mnt", "/media", "/srv", "/opt", "/home", "/var/tmp", "/tmp"}) {
    const std::string site = real_path(name);
    struct stat status {};
    if (site == "/" || ::stat(site.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) continue;
    if (std::none_of(used.begin(), used.end(),
                     [&](const std::string& path) { return is_within(path, site) || is_within(site, path); }))
      return site;
  }
  return fail(ErrorCode::internal, "there is no folder to build the container's root on",
              "make an empty folder /mnt on the node");
}

class Builder {
 public:
  Builder(Fd rootfs, std::string site) : rootfs_(std::move(rootfs)), site_(std::move(site)) {}

  Result<void> carry_out(const Step& step) {
    const Result<void> done = start(step);
    return done || step.optional ? Result<void>() : done;
  }

 private:
  using Kind = Step::Kind;

  Result<void> start(const Step& step) {
    const std::string at = site_ + step.target;
    switch (step.kind) {
      case Kind::folder: return make_folders(at);
      case Kind::link: return link(step, at);
      case Kind::bind: return bind(step.source, step, at);
      // Through the open folder: its path may be hidden by what has been mounted since.
      case Kind::root_bind:
        return bind(fmt::format("/proc/self/fd/{}{}", rootfs_.get(), step.target), step, at);
      case Kind::tmpfs: return mount_new("tmpfs", fmt::format("mode={:o}", step.mode), step, at);
      case Kind::terminals: return mount_new("devpts", "newinstance,ptmxmode=0666,mode=0620", step, at);
      case Kind::text: return text(step, at);
    }
    return {};
  }

  static Result<void> link(const Step& step, const std::string& at) {
    if (auto made = make_folders(parent(at)); !made) return made;
    if (::symlink(step.source.c_str(), at.c_str()) == 0 || errno == EEXIST) return {};
    return fail(system_error("cannot make the link " + step.target, errno));
  }

  static Result<void> make_point(const std::string& at, bool is_folder) {
    if (is_folder) return make_folders(at);
    if (is_there(at)) return {};
    if (auto made = make_folders(parent(at)); !made) return made;
    const Fd file(::open(at.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    if (!file) return fail(system_error("cannot make a place for a mount at " + at, errno));
    return {};
  }

  static Result<void> bind(const std::string& source, const Step& step, const std::string& at) {
    const std::string& name = step.source.empty() ? step.target : step.source;
    struct stat status {};
    if (::stat(source.c_str(), &status) != 0)
      return fail(system_error(fmt::format("cannot bring {} into the container", name), errno));
    if (auto made = make_point(at, S_ISDIR(status.st_mode)); !made) return made;
    // All below it too: the kernel refuses to show without its covers what was covered for an outer user.
    if (::mount(source.c_str(), at.c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0)
      return fail(system_error(fmt::format("cannot bind {} into the container", name), errno));
    return step.read_only ? make_read_only(at, name) : Result<void>();
  }

  static Result<void> make_read_only(const std::string& at, const std::string& name) {
    mount_attr attributes{};
    attributes.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
    if (::mount_setattr(AT_FDCWD, at.c_str(), AT_RECURSIVE, &attributes, sizeof attributes) == 0) return {};
    if (errno != ENOSYS && errno != EPERM && errno != EINVAL)
      return fail(system_error(fmt::format("cannot make {} read-only", name), errno));
    // Kernels before 5.12, and seccomp filters of that age. Flags the mount has already must be kept.
    struct statvfs status {};
    if (::statvfs(at.c_str(), &status) != 0) return fail(system_error("cannot look at " + name, errno));
    unsigned long flags = MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV;
    if (status.f_flag & ST_NOEXEC) flags |= MS_NOEXEC;
    if (status.f_flag & ST_NOATIME) flags |= MS_NOATIME;
    if (status.f_flag & ST_NODIRATIME) flags |= MS_NODIRATIME;
    if (status.f_flag & ST_RELATIME) flags |= MS_RELATIME;
    if (::mount(nullptr, at.c_str(), nullptr, flags, nullptr) == 0) return {};
    return fail(system_error(fmt::format("cannot make {} read-only", name), errno));
  }

  static Result<void> mount_new(const char* type, const std::string& options, const Step& step,
                                const std::string& at) {
    if (auto made = make_folders(at); !made) return made;
    const unsigned long flags = MS_NOSUID | (step.kind == Kind::tmpfs ? MS_NODEV : MS_NOEXEC);
    if (::mount(type, at.c_str(), type, flags, options.c_str()) == 0) return {};
    return fail(system_error(fmt::format("cannot mount {} at {}", type, step.target), errno));
  }

  // Written beside and bound over: the folder it belongs into may be the root file system's own.
  Result<void> text(const Step& step, const std::string& at) {
    const std::string beside = site_ + "/.text";
    Fd file(::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    if (!file) return fail(system_error("cannot write " + step.target, errno));
    Result<void> done = write_all(file.get(), step.source, step.target);
    if (done) done = bind(beside, {.target = step.target, .read_only = true}, at);
    ::unlink(beside.c_str());
    return done;
  }

  static std::string parent(const std::string& path) {
    return std::filesystem::path(path).parent_path().string();
  }

  Fd rootfs_;
  std::string site_;
};

Result<void> move_into(const std::string& site, const std::string& working_folder) {
  // pivot_root with one folder for both stacks the old root on the new; it is then taken off.
  if (::chdir(site.c_str()) != 0 || ::syscall(SYS_pivot_root, ".", ".") != 0 ||
      ::umount2(".", MNT_DETACH) != 0)
    return fail(refused("enter the container's root", errno));
  if (::mount(nullptr, "/", nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV, nullptr) != 0)
    return fail(system_error("cannot make the container's root read-only", errno));
  if (::chdir(working_folder.c_str()) != 0)
    return fail(system_error(fmt::format("cannot enter {} in the container", working_folder), errno));
  return {};
}

}  // namespace

ReadFolder read_from(const std::string& rootfs) {
  return [rootfs](const std::string& folder) {
    std::vector<Entry> entries;
    const std::string path = rootfs + folder;
    const std::unique_ptr<DIR, int (*)(DIR*)> stream(::opendir(path.c_str()), ::closedir);
    while (const dirent* found = stream ? ::readdir(stream.get()) : nullptr) {
      Entry entry{found->d_name};
      struct stat status {};
      if (entry.name == "." || entry.name == ".." ||
          ::fstatat(::dirfd(stream.get()), found->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0)
        continue;
      entry.kind = S_ISDIR(status.st_mode)   ? EntryKind::folder
                   : S_ISREG(status.st_mode) ? EntryKind::file
                   : S_ISLNK(status.st_mode) ? EntryKind::link
                                             : EntryKind::other;
      std::error_code ignored;
      if (entry.kind == EntryKind::link)
        entry.points_to = std::filesystem::read_symlink(path + "/" + entry.name, ignored).string();
      entries.push_back(std::move(entry));
    }
    return entries;
  };
}

Result<void> check_rootfs(const std::string& rootfs, const std::string& given) {
  if (is_there(rootfs + "/bin") || is_there(rootfs + "/usr")) return {};
  const std::string what =
      fmt::format("{} is not a root file system: it has neither bin/ nor usr/ at its top", given);
  if (is_there(rootfs + "/manifest.json") || is_there(rootfs + "/oci-layout"))
    return fail(
        ErrorCode::invalid, what,
        fmt::format("it is an image: give it as image, oci-archive:{0} or docker-archive:{0}", given));
  return fail(ErrorCode::invalid, what, "pack one with tar -C ROOT -cf rootfs.tar .");
}

Result<void> enter_root(const std::string& rootfs, const std::vector<Step>& steps,
                        const std::string& working_folder, const std::vector<Share>& shares) {
  const Result<std::string> site = building_site(rootfs, shares);
  if (!site) return fail(site.error());
  if (auto unshared = unshare_mounts(); !unshared) return unshared;
  // After unshare: a mount of the outer namespace cannot be bound into this one.
  Fd folder(::open(rootfs.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return fail(system_error("cannot open " + rootfs, errno));
  if (::mount("tmpfs", site->c_str(), "tmpfs", MS_NOSUID | MS_NODEV, "mode=755") != 0)
    return fail(refused("mount in a namespace", errno));
  const mode_t mask = ::umask(0);  // modes are given exactly
  Builder builder(std::move(folder), *site);
  for (const Step& step : steps)
    if (auto done = builder.carry_out(step); !done) return done;
  ::umask(mask);
  return move_into(*site, working_folder);
}

}  // namespace slipway::container
