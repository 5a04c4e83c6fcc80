#include "keeper/cgroup.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <string_view>

#include "keeper/cgroup_files.h"

namespace slipway::keeper {
namespace {

bool offers(const std::string& group, std::string_view controller) {
  const Result<std::string> controllers = read_file(group + "/cgroup.controllers");
  return controllers && has_word(*controllers, controller);
}

// Lets the groups below have the controller, where this one has it.
bool pass_on(const std::string& group, const std::string& controller) {
  return offers(group, controller) &&
         write_control(group + "/cgroup.subtree_control", "+" + controller).has_value();
}

std::string group_name(std::string_view keeper_id) { return "slipway-" + std::string(keeper_id); }

constexpr std::uint64_t cpu_period = 100'000;   // microseconds, the kernel's own default
constexpr std::uint64_t cpu_quota_min = 1'000;  // the least the kernel takes

std::string read_again(const Fd& fd) {  // small control files, kept open
  char buffer[512];
  const ssize_t got = ::pread(fd.get(), buffer, sizeof buffer, 0);
  return got > 0 ? std::string(buffer, static_cast<std::size_t>(got)) : std::string();
}

}  // namespace

CgroupPool::CgroupPool(const std::string& keeper_id, Mode mode) {
  if (mode == Mode::forbidden) {
    no_trees_ = no_limits_ = cpu_limit_reason_ = "SLIPWAY_NO_CGROUP is set";
    return;
  }
  find_trees(group_name(keeper_id));
  find_memory(group_name(keeper_id));
  find_pids(group_name(keeper_id));
  cpu_limit_reason_ = tree_has_cpu_ ? "cpu.max in " + tree_folder_
                      : tree_folder_.empty()
                          ? no_trees_
                          : "the cpu controller is in no v2 cgroup that this agent may use";
}

std::vector<std::string> CgroupPool::left_by(std::string_view id_begins) {
  std::vector<std::string> parents;
  if (const auto own = own_cgroup_v2()) parents = {*own, std::filesystem::path(*own).parent_path().string()};
  for (const char* controller : {"memory", "pids"})
    if (const auto own = own_cgroup_v1(controller)) parents.push_back(*own);
  std::vector<std::string> left;
  for (const std::string& parent : parents)
    for (std::string& group : groups_below(parent))
      if (std::string_view(group).substr(parent.size() + 1).starts_with(group_name(id_begins)))
        left.push_back(std::move(group));
  return left;
}

// Under our own group; or beside it, where the kernel's rule that a group with processes passes no
// controllers on to those below would cost us the limits.
void CgroupPool::find_trees(const std::string& name) {
  const Result<std::string> own = own_cgroup_v2();
  if (!own) {
    no_trees_ = own.error().what;
    return;
  }
  const std::string beside = std::filesystem::path(*own).parent_path().string();
  for (const char* controller : {"memory", "cpu", "pids"}) (void)pass_on(*own, controller);
  for (const std::string& parent : {*own, beside}) {
    if (::access((parent + "/cgroup.procs").c_str(), F_OK) != 0) continue;  // above the hierarchy
    const std::string group = parent + "/" + name;
    if (auto made = make_group(group); !made) {
      if (no_trees_.empty()) no_trees_ = made.error().what;
      continue;
    }
    const bool memory = pass_on(group, "memory"), cpu = pass_on(group, "cpu"), pids = pass_on(group, "pids");
    const bool better = tree_folder_.empty() || memory > tree_has_memory_ ||
                        (memory == tree_has_memory_ && cpu > tree_has_cpu_);
    ::rmdir((better ? tree_folder_ : group).c_str());
    if (better) {
      tree_folder_ = group;
      tree_has_memory_ = memory;
      tree_has_cpu_ = cpu;
      tree_has_pids_ = pids;
    }
    if ((tree_has_memory_ || !offers(*own, "memory")) && (tree_has_cpu_ || !offers(*own, "cpu"))) return;
  }
}

void CgroupPool::find_memory(const std::string& name) {
  if (tree_has_memory_) return;
  const Result<std::string> own = own_cgroup_v1("memory");
  if (!own) {
    no_limits_ = "the memory controller is in no cgroup that this agent may use";
    return;
  }
  if (auto made = make_group(*own + "/" + name); !made)
    no_limits_ = made.error().what;
  else
    memory_folder_ = *own + "/" + name;
}

void CgroupPool::find_pids(const std::string& name) {
  if (tree_has_pids_) return;
  const Result<std::string> own = own_cgroup_v1("pids");
  if (own && make_group(*own + "/" + name)) pids_folder_ = *own + "/" + name;
}

std::vector<std::string> CgroupPool::notes() const {
  std::vector<std::string> notes;
  if (!no_limits_.empty()) notes.push_back("no memory limits: " + no_limits_);
  if (tree_folder_.empty())
    notes.push_back("no cgroups for process trees (they are found by inherited marks instead): " + no_trees_);
  return notes;
}

std::vector<std::string> CgroupPool::folders() const {
  std::vector<std::string> folders;
  if (!tree_folder_.empty()) folders.push_back(tree_folder_);
  if (!memory_folder_.empty()) folders.push_back(memory_folder_);
  if (!pids_folder_.empty()) folders.push_back(pids_folder_);
  return folders;
}

void CgroupPool::give_up(const std::string& why) {
  no_trees_ = why;
  if (auto removed = remove(); !removed) no_trees_ += "; " + removed.error().what;
  if (no_limits_.empty()) no_limits_ = why;
  tree_has_memory_ = tree_has_cpu_ = tree_has_pids_ = false;
  cpu_limit_reason_ = why;
  tree_folder_.clear();
  memory_folder_.clear();
  pids_folder_.clear();
}

std::string CgroupPool::slot_folder(int number, const Slot& slot) const {
  return fmt::format("{}/slot-{}.{}", tree_folder_, number, slot.generation);
}

Result<void> CgroupPool::open_slot(int number, Slot& slot) const {
  if (tree_folder_.empty() || slot.folder) return {};
  const std::string folder = slot_folder(number, slot);
  if (auto made = make_group(folder); !made) return made;
  slot.folder = Fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  slot.events = Fd(::open((folder + "/cgroup.events").c_str(), O_RDONLY | O_CLOEXEC));
  if (!slot.folder || !slot.events) return fail(system_error("cannot open " + folder, errno));
  return {};
}

int CgroupPool::take() {
  if (tree_folder_.empty() && memory_folder_.empty() && pids_folder_.empty()) return -1;
  if (free_.empty()) {
    free_.push_back(static_cast<int>(slots_.size()));
    slots_.emplace_back();
  }
  const int number = free_.back();
  // E.g. the machine's limit of groups: then the marks find this one's tree.
  if (!open_slot(number, slots_[static_cast<std::size_t>(number)])) return -1;
  free_.pop_back();
  return number;
}

void CgroupPool::give_back(int number) {
  if (number < 0) return;
  free_.push_back(number);
  Slot& slot = slots_.at(static_cast<std::size_t>(number));
  if (!slot.was_killed) return;
  // Kernels since 6.14 compare how often the group of the parent and that of a child started in another one
  // were killed, and kill the child when the numbers differ. So a group that was killed once cannot be used
  // again.
  ::rmdir(slot_folder(number, slot).c_str());  // still busy for a moment, perhaps; then remove() does it
  const std::uint32_t generation = slot.generation + 1;
  slot = Slot{};
  slot.generation = generation;
}

int CgroupPool::folder_fd(int slot) const {
  return slot < 0 ? -1 : slots_[static_cast<std::size_t>(slot)].folder.get();
}

int CgroupPool::events_fd(int slot) const { return slots_.at(static_cast<std::size_t>(slot)).events.get(); }

Result<int> CgroupPool::limit_memory(int number, Bytes limit) {
  if (number < 0) return -1;
  Slot& slot = slots_.at(static_cast<std::size_t>(number));
  if (limit != 0 && slot.memory_folder.empty()) {
    if (!tree_has_memory_ && memory_folder_.empty()) return -1;
    slot.memory_folder =
        tree_has_memory_ ? slot_folder(number, slot) : fmt::format("{}/slot-{}", memory_folder_, number);
    if (auto made = make_group(slot.memory_folder); !made) return fail(made.error());
    if (!tree_has_memory_) {
      slot.memory_tasks = Fd(::open((slot.memory_folder + "/tasks").c_str(), O_WRONLY | O_CLOEXEC));
      if (!slot.memory_tasks) return fail(system_error("cannot open " + slot.memory_folder, errno));
    }
  }
  slot.is_limited = limit != 0 && !slot.memory_folder.empty();
  if (slot.memory_folder.empty()) return -1;
  if (limit != slot.limit)
    if (auto set = set_limit(slot, limit); !set) return fail(set.error());
  if (!slot.is_limited) return -1;
  slot.oom_kills = oom_kills(slot);
  return slot.memory_tasks.get();
}

std::string CgroupPool::pids_folder(int number, const Slot& slot) const {
  return tree_has_pids_ ? slot_folder(number, slot) : fmt::format("{}/slot-{}", pids_folder_, number);
}

Result<int> CgroupPool::limit_pids(int number, std::uint32_t limit) {
  if (number < 0 || !can_limit_pids()) return -1;
  Slot& slot = slots_.at(static_cast<std::size_t>(number));
  const std::string folder = pids_folder(number, slot);
  if (!tree_has_pids_ && !slot.pids_tasks) {
    if (auto made = make_group(folder); !made) return fail(made.error());
    slot.pids_tasks = Fd(::open((folder + "/tasks").c_str(), O_WRONLY | O_CLOEXEC));
    if (!slot.pids_tasks) return fail(system_error("cannot open " + folder, errno));
  }
  if (limit != slot.pids)
    if (auto set = write_control(folder + "/pids.max", std::to_string(limit)); !set) return fail(set.error());
  slot.pids = limit;
  return slot.pids_tasks.get();
}

Result<void> CgroupPool::limit_cpu(int number, Millicores cores) {
  if (number < 0 || !tree_has_cpu_) return {};
  Slot& slot = slots_.at(static_cast<std::size_t>(number));
  if (cores == slot.cores) return {};
  const std::uint64_t quota = std::max(cpu_quota_min, cores * cpu_period / 1000);
  const std::string value =
      cores == 0 ? fmt::format("max {}", cpu_period) : fmt::format("{} {}", quota, cpu_period);
  auto set = write_control(slot_folder(number, slot) + "/cpu.max", value);
  if (set) slot.cores = cores;
  return set;
}

Result<void> CgroupPool::set_limit(Slot& slot, Bytes limit) {
  const auto set = [&](const char* name, const std::string& value) {
    return write_control(slot.memory_folder + name, value);
  };
  Result<void> done;
  if (tree_has_memory_) {
    done = set("/memory.max", limit == 0 ? "max" : std::to_string(limit));
    if (done) {  // absent on machines without swap, or on older kernels
      (void)set("/memory.swap.max", limit == 0 ? "max" : "0");
      (void)set("/memory.oom.group", "1");
    }
  } else if (limit != 0) {  // an unlimited process does not enter a v1 group at all
    // The limit with swap may never be the lower one, so it is lifted first; it is absent without swap.
    (void)set("/memory.memsw.limit_in_bytes", "-1");
    done = set("/memory.limit_in_bytes", std::to_string(limit));
    (void)set("/memory.memsw.limit_in_bytes", std::to_string(limit));
  }
  if (done) slot.limit = limit;
  return done;
}

std::uint64_t CgroupPool::oom_kills(const Slot& slot) const {
  const char* name = tree_has_memory_ ? "/memory.events" : "/memory.oom_control";
  const Result<std::string> content = read_file(slot.memory_folder + name);
  return content ? control_number(*content, "oom_kill") : 0;
}

bool CgroupPool::ran_out_of_memory(int number) const {
  if (number < 0) return false;
  const Slot& slot = slots_.at(static_cast<std::size_t>(number));
  return slot.is_limited && oom_kills(slot) > slot.oom_kills;
}

bool CgroupPool::is_empty(int number) const {
  const Slot& slot = slots_.at(static_cast<std::size_t>(number));
  if (control_number(read_again(slot.events), "populated") == 0) return true;
  // A process that has ended counts until the kernel has put it away, some microseconds after its parent is
  // known. It is in no list any more and can start nothing.
  const std::string folder = slot_folder(number, slot);
  if (!group_processes(folder).empty()) return false;
  const Result<std::string> stat = read_file(folder + "/cgroup.stat");
  return stat && control_number(*stat, "nr_descendants") == 0;
}

void CgroupPool::signal(int number, int signal) const {
  const Slot& slot = slots_.at(static_cast<std::size_t>(number));
  for (const pid_t pid : group_processes(slot_folder(number, slot))) ::kill(pid, signal);
}

void CgroupPool::kill(int number) {
  Slot& slot = slots_.at(static_cast<std::size_t>(number));
  slot.was_killed = write_control(slot_folder(number, slot) + "/cgroup.kill", "1").has_value();
  // Kernels before 5.14 cannot at one stroke; what escapes is found when the group is looked at again.
  if (!slot.was_killed) signal(number, SIGKILL);
}

Result<void> CgroupPool::remove() {
  slots_.clear();
  free_.clear();
  Result<void> result;
  for (const std::string& folder : folders())
    if (auto cleared = clear_cgroup(folder); !cleared) result = cleared;
  return result;
}

}  // namespace slipway::keeper
