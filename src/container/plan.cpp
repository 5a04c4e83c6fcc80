#include "container/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <optional>
#include <set>

namespace slipway::container {
namespace {

using Kind = Step::Kind;

constexpr const char* root = "/";
constexpr int links_max = 40;  // as the kernel

std::string join(const std::string& folder, const std::string& name) {
  return fmt::format("{}/{}", folder == "/" ? "" : folder, name);
}

std::string parent(const std::string& path) { return std::filesystem::path(path).parent_path().string(); }
std::string name_of(const std::string& path) { return std::filesystem::path(path).filename().string(); }

std::deque<std::string> split(const std::string& path) {
  std::deque<std::string> names;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    if (end > begin) names.push_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return names;
}

std::optional<Entry> look(const ReadFolder& read_folder, const std::string& folder, const std::string& name) {
  for (Entry& entry : read_folder(folder))
    if (entry.name == name) return std::move(entry);
  return std::nullopt;
}

class Planner {
 public:
  explicit Planner(const ReadFolder& read_folder) : read_folder_(read_folder) {}

  // A mount, at the place its path leads to inside.
  void add(Step step) {
    step.target = resolve(step.target);
    const bool is_folder_above = covered(step.target);
    if (step.kind != Kind::link && step.kind != Kind::folder) mounted_.insert(step.target);
    if (!is_folder_above) open_up_to(step.target);
    wanted_.push_back(std::move(step));
  }

  bool exists(const std::string& path) const {
    const std::string place = resolve(path);
    return place == "/" || covered(place) || look(read_folder_, parent(place), name_of(place));
  }

  std::vector<Step> steps() const {
    std::vector<Step> steps;
    for (const std::string& folder : opened_) {  // in order, so parents come first
      if (folder != "/") steps.push_back({Kind::folder, folder});
      for (const Entry& entry : read_folder_(folder)) {
        const std::string path = join(folder, entry.name);
        if (opened_.contains(path) || mounted_.contains(path)) continue;
        if (entry.kind == EntryKind::link) steps.push_back({Kind::link, path, entry.points_to});
        if (entry.kind == EntryKind::folder || entry.kind == EntryKind::file)
          steps.push_back({.kind = Kind::root_bind, .target = path, .read_only = true});
      }
    }
    steps.insert(steps.end(), wanted_.begin(), wanted_.end());
    return steps;
  }

  std::string resolve(const std::string& path) const {
    std::deque<std::string> left = split(path);
    std::string done(root);
    int links = 0;
    while (!left.empty()) {
      const std::string name = left.front();
      left.pop_front();
      if (name == ".") continue;
      if (name == "..") {
        done = parent(done);
        continue;
      }
      const std::string next = join(done, name);
      const std::optional<Entry> entry = covered(next) ? std::nullopt : look(read_folder_, done, name);
      if (!entry || entry->kind != EntryKind::link || ++links > links_max) {
        done = next;
        continue;
      }
      if (entry->points_to.starts_with('/')) done = std::string(root);
      const std::deque<std::string> target = split(entry->points_to);
      left.insert(left.begin(), target.begin(), target.end());
    }
    return done;
  }

 private:
  // Whether something is mounted at or above the path, so that the root file system does not show there.
  bool covered(const std::string& path) const {
    return std::any_of(mounted_.begin(), mounted_.end(),
                       [&](const std::string& mount) { return is_within(path, mount); });
  }

  // A mount point that is missing can be made only where all above it is ours.
  void open_up_to(const std::string& target) {
    std::vector<std::string> above{"/"};
    for (const std::string& name : split(target)) {
      const std::optional<Entry> entry = look(read_folder_, above.back(), name);
      const std::string path = join(above.back(), name);
      const bool is_last = path == target;
      if (!entry || (entry->kind != EntryKind::folder && !is_last)) break;
      if (is_last) return;
      above.push_back(path);
    }
    opened_.insert(above.begin(), above.end());
  }

  const ReadFolder& read_folder_;
  std::vector<Step> wanted_;
  std::set<std::string> mounted_;
  std::set<std::string> opened_{"/"};
};

void add_devices(Planner& planner, const ContainerRequest& request) {
  planner.add({.kind = Kind::tmpfs, .target = "/dev"});
  for (const std::string& device : request.devices)
    planner.add({.kind = Kind::bind, .target = device, .source = device, .optional = true});
  // The machine's, as outside: ranks of one node exchange through it.
  if (request.has_machine_shm)
    planner.add({.kind = Kind::bind, .target = "/dev/shm", .source = "/dev/shm"});
  else
    planner.add({.kind = Kind::tmpfs, .target = "/dev/shm", .mode = 01777});
  planner.add({.kind = Kind::terminals, .target = "/dev/pts", .optional = true});
  planner.add({Kind::link, "/dev/ptmx", "pts/ptmx"});
  planner.add({Kind::link, "/dev/fd", "/proc/self/fd"});
  planner.add({Kind::link, "/dev/stdin", "/proc/self/fd/0"});
  planner.add({Kind::link, "/dev/stdout", "/proc/self/fd/1"});
  planner.add({Kind::link, "/dev/stderr", "/proc/self/fd/2"});
}

}  // namespace

std::vector<Step> plan(const ReadFolder& read_folder, const ContainerRequest& request) {
  Planner planner(read_folder);
  planner.add({.kind = Kind::bind, .target = "/proc", .source = "/proc"});
  planner.add({.kind = Kind::bind,
               .target = "/proc/sys",
               .source = "/proc/sys",
               .read_only = true,
               .optional = true});
  planner.add({.kind = Kind::bind, .target = "/sys", .source = "/sys", .read_only = true, .optional = true});
  add_devices(planner, request);
  for (const char* folder : {"/tmp", "/run", "/var/tmp"})
    planner.add(
        {.kind = Kind::tmpfs, .target = folder, .mode = folder == std::string("/run") ? 0755U : 01777U});
  for (const char* file : {"/etc/resolv.conf", "/etc/hosts"})
    planner.add({.kind = Kind::bind, .target = file, .source = file, .read_only = true, .optional = true});
  if (!request.passwd.empty())
    planner.add({.kind = Kind::text, .target = "/etc/passwd", .source = request.passwd, .read_only = true});
  for (const std::string& file : request.driver_files)
    planner.add({.kind = Kind::bind,
                 .target = join(driver_folder, name_of(file)),
                 .source = file,
                 .read_only = true,
                 .optional = true});
  // Before the shares, which may lie in them; not where a share will be.
  for (const std::string& folder : request.scratch) {
    const bool is_shared = std::any_of(request.shares.begin(), request.shares.end(),
                                       [&](const Share& share) { return is_within(folder, share.path); });
    if (folder.starts_with('/') && !is_shared && !planner.exists(folder))
      planner.add({.kind = Kind::tmpfs, .target = folder, .mode = 0700});
  }
  for (const Share& share : request.shares)
    planner.add(
        {.kind = Kind::bind, .target = share.path, .source = share.path, .read_only = share.read_only});
  return planner.steps();
}

std::string resolve(const ReadFolder& read_folder, const std::string& path) {
  return Planner(read_folder).resolve(path);
}

std::string with_user(const std::string& passwd, unsigned uid, unsigned gid, const std::string& name,
                      const std::string& home) {
  bool is_name_taken = false;
  for (std::size_t begin = 0; begin < passwd.size();) {
    const std::size_t end = std::min(passwd.find('\n', begin), passwd.size());
    const std::string line = passwd.substr(begin, end - begin);
    begin = end + 1;
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    is_name_taken = is_name_taken || line.substr(0, first) == name;
    if (line.compare(second + 1, line.find(':', second + 1) - second - 1, std::to_string(uid)) == 0)
      return passwd;
  }
  const bool needs_newline = !passwd.empty() && passwd.back() != '\n';
  const std::string chosen = uid == 0                        ? "root"
                             : name.empty() || is_name_taken ? fmt::format("user{}", uid)
                                                             : name;
  return fmt::format("{}{}{}:x:{}:{}::{}:/bin/sh\n", passwd, needs_newline ? "\n" : "", chosen, uid, gid,
                     home.empty() ? "/" : home);
}

}  // namespace slipway::container
