#include "domain/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "domain/environment.h"
#include "domain/gang.h"

namespace slipway {
namespace {

Error invalid(std::string what, std::string hint) {
  return Error{ErrorCode::invalid, std::move(what), std::move(hint)};
}

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
         c == '.';
}

bool is_empty(const Command& command) {
  if (const auto* shell = std::get_if<std::string>(&command))
    return shell->find_first_not_of(" \t\r\n") == std::string::npos;
  const auto& list = std::get<std::vector<std::string>>(command);
  return list.empty() || list.front().empty();
}

constexpr std::uint32_t processes_max = 100'000;  // of one gang

Result<void> validate_roles(const TaskSpec& task) {
  const auto wrong = [&](std::string what, std::string hint) {
    return fail(invalid(fmt::format("task {}: {}", task.name, what), std::move(hint)));
  };
  if (!takes_roles(task.toolkit))
    return wrong(fmt::format("toolkit {} has no roles: all its processes are alike", to_string(task.toolkit)),
                 "say nodes and processes_per_node, and one command");
  if (!is_empty(task.command))
    return wrong("it has a command and roles with their own", "move the command into the roles");
  if (task.processes_per_node != 1)
    return wrong("it has roles and processes_per_node", "say how many of each role with count");
  std::string names;
  std::uint64_t processes = 0, workers = 0;
  for (const RoleSpec& role : task.roles) {
    if (auto named = validate_name("role", role.name); !named) return named;
    if (role.count == 0)
      return wrong(fmt::format("role {} has a count of 0", role.name),
                   "give it at least 1, or leave the role out");
    if (is_empty(role.command))
      return wrong(fmt::format("role {} has no command", role.name),
                   "give it one: command: [python3, train.py]");
    for (const RoleSpec& other : task.roles)
      if (&other != &role && other.name == role.name)
        return wrong(fmt::format("two roles are called {}", role.name), "give one of them a larger count");
    if (task.toolkit == Toolkit::tensorflow && role.name != "chief" && role.name != "master" &&
        role.name != "worker" && role.name != "ps" && role.name != "evaluator")
      return wrong(fmt::format("TensorFlow has no role {}", role.name),
                   "its roles are chief, worker, ps and evaluator");
    if ((role.name == "chief" || role.name == "master") && role.count != 1 &&
        task.toolkit == Toolkit::tensorflow)
      return wrong(fmt::format("there are {} chiefs", role.count),
                   "give chief a count of 1, and add workers");
    if (role.name == "chief" || role.name == "master" || role.name == "worker") workers += role.count;
    names += (names.empty() ? "" : ", ") + role.name;
    processes += role.count;
  }
  if (task.toolkit == Toolkit::tensorflow && workers == 0)
    return wrong("there is no worker, so nothing would ever train", "add a role worker, or chief");
  if (processes > processes_max)
    return wrong(fmt::format("its roles have {} processes", processes),
                 fmt::format("a gang has at most {}", processes_max));
  if (!task.ends_with.empty() && task.ends_with != "all" &&
      std::none_of(task.roles.begin(), task.roles.end(),
                   [&](const RoleSpec& role) { return role.name == task.ends_with; }))
    return wrong(fmt::format("it ends with role {}, which it does not have", task.ends_with),
                 fmt::format("its roles are {}", names));
  if (task.nodes > processes)
    return wrong(fmt::format("{} processes cannot use {} nodes", processes, task.nodes),
                 fmt::format("ask for at most {} nodes, or leave nodes out", processes));
  return {};
}

Result<void> validate_gang(const TaskSpec& task) {
  const auto wrong = [&](std::string what, std::string hint) {
    return fail(invalid(fmt::format("task {}: {}", task.name, what), std::move(hint)));
  };
  if (!task.ends_with.empty() && task.ends_with != "all" && task.roles.empty())
    return wrong(fmt::format("it ends with role {}, but has no roles", task.ends_with),
                 "take ends_with out, or describe the roles");
  if (task.torchrun && task.toolkit != Toolkit::torch)
    return wrong("launcher torchrun needs toolkit torch", "say toolkit: torch");
  if (task.is_elastic() && task.nodes_min > task.nodes)
    return wrong(fmt::format("nodes: min {} is above max {}", task.nodes_min, task.nodes), "swap them");
  if (task.is_elastic() && !task.roles.empty())
    return wrong("a gang with roles cannot be elastic", "say nodes: N, or leave the roles out");
  if (task.framework_elastic && !task.is_elastic())
    return wrong("elastic: framework needs a number of nodes that may change", "say nodes: {min: 1, max: 4}");
  if (task.framework_elastic && !task.torchrun && task.toolkit != Toolkit::horovod)
    return wrong("elastic: framework needs one that can continue with other nodes",
                 "say toolkit: torch with launcher: torchrun, or toolkit: horovod; or elastic: restart");
  if (!task.container.image.empty() && !task.container.rootfs.empty())
    return wrong("its container has an image and a rootfs", "keep one of them");
  if (!task.container.rootfs.empty() && task.container.rootfs.front() != '/')
    return wrong(fmt::format("container rootfs '{}' is not an absolute path", task.container.rootfs),
                 "name a folder or tarball of the node, beginning with '/'");
  return {};
}

bool is_clean(std::string_view path) {  // relative, and without a step that leads elsewhere
  if (path.empty() || path.front() == '/') return false;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view part = path.substr(begin, end - begin);
    if (part.empty() || part == "." || part == "..") return false;
    if (std::any_of(part.begin(), part.end(), [](char c) { return c >= 0 && c < ' '; })) return false;
    begin = end + 1;
  }
  return true;
}

}  // namespace

bool is_under(std::string_view path, std::string_view root) {
  return path.size() > root.size() + 1 && path.starts_with(root) && path[root.size()] == '/' &&
         is_clean(path.substr(root.size() + 1));
}

Result<void> validate_mounts(std::string_view root, const std::vector<Mount>& mounts) {
  if (root.empty() && mounts.empty()) return {};
  if (root.size() < 2 || root.front() != '/' || !is_clean(root.substr(1)))
    return fail(invalid(fmt::format("mount_root '{}' is not a plain absolute path", root),
                        "name a folder, like /mnt/slipway; it need not exist"));
  for (const Mount& mount : mounts) {
    const auto wrong = [&](std::string what, std::string hint) {
      return fail(invalid(fmt::format("the mount at '{}': {}", mount.at, what), std::move(hint)));
    };
    if (!is_clean(mount.at))
      return wrong("its place is not a plain relative path", "name it under the mount root: at: data");
    if (std::count_if(mounts.begin(), mounts.end(), [&](const Mount& one) { return one.at == mount.at; }) > 1)
      return wrong("two mounts have this place", "give each its own");
    if (!mount.folder.empty() && !is_clean(mount.folder))
      return wrong(fmt::format("folder '{}' is not a plain relative path", mount.folder),
                   "name a folder inside what is mounted");
    if (!mount.folder.empty() && mount.kind != MountKind::datastore && mount.kind != MountKind::path)
      return wrong("only a datastore and a path have folders to choose", "leave folder out");
    if (mount.kind == MountKind::datastore)
      if (auto named = validate_name("datastore", mount.what); !named) return named;
    if (mount.kind == MountKind::path && (mount.what.size() < 2 || mount.what.front() != '/' ||
                                          !is_clean(std::string_view(mount.what).substr(1))))
      return wrong(fmt::format("path '{}' is not a plain absolute path", mount.what),
                   "name a folder of the node");
    if (mount.kind == MountKind::command && mount.what.empty())
      return wrong("its command is empty", "give the command that mounts it, without the place");
  }
  return {};
}

namespace {

Result<void> validate_task_environment(const TaskSpec& task) {
  const auto wrong = [&](std::string what, std::string hint) {
    return fail(invalid(fmt::format("task {}: {}", task.name, what), std::move(hint)));
  };
  if (auto mounts = validate_mounts(task.mount_root, task.mounts); !mounts)
    return wrong(mounts.error().what, mounts.error().hint);
  const auto under = [&](std::string_view key, const std::string& path) -> Result<void> {
    if (!task.mount_root.empty() && is_under(path, task.mount_root)) return {};
    return wrong(fmt::format("{} '{}' is not under its mount root", key, path),
                 task.mount_root.empty() ? "say mount_root: /mnt/slipway"
                                         : fmt::format("begin it with {}/", task.mount_root));
  };
  for (const std::string& folder : task.folders)
    if (auto ok = under("folder", folder); !ok) return ok;
  for (const auto& [path, text] : task.templates)
    if (auto ok = under("text", path); !ok) return ok;
  if (!task.logs.empty())
    if (auto ok = under("logs", task.logs); !ok) return ok;
  if (auto named = validate_name("preparation", task.preparation.name); !named) return named;
  for (const RoleSpec& role : task.roles)
    if (!role.log.empty())
      if (auto named = validate_name("log", role.log); !named) return named;
  if (task.in_blocks && task.roles.empty())
    return wrong("placing: blocks is about roles, and it has none", "leave it out");
  return {};
}

Result<void> validate_task(const TaskSpec& task) {
  if (auto named = validate_name("task", task.name); !named) return named;
  if (!task.roles.empty()) {
    if (auto ok = validate_roles(task); !ok) return ok;
  } else if (is_empty(task.command)) {
    return fail(invalid(fmt::format("task {} has an empty command", task.name),
                        "give it one: command: [python3, train.py], or command: \"echo hello\""));
  }
  if (auto ok = validate_gang(task); !ok) return ok;
  const auto within = [&](std::string_view key, std::uint64_t value, std::uint64_t low,
                          std::uint64_t high) -> Result<void> {
    if (value >= low && value <= high) return {};
    return fail(invalid(fmt::format("task {}: {} is {}", task.name, key, value),
                        fmt::format("{} goes from {} to {}", key, low, high)));
  };
  if (auto ok = within("count", task.tasks(), 1, JobLimits::tasks_max); !ok) return ok;
  if (auto ok = within("nodes", task.nodes, task.roles.empty() ? 1 : 0, JobLimits::nodes_max); !ok) return ok;
  if (auto ok = within("processes_per_node", task.processes_per_node, 1, 4096); !ok) return ok;
  if (auto ok = within("retries", task.retries, 0, JobLimits::retries_max); !ok) return ok;
  for (const Environment* variables : {&task.environment, &task.process_environment, &task.secrets})
    if (auto ok = validate_environment("task " + task.name, *variables); !ok) return ok;
  for (const auto& [variable, ref] : task.secret_refs) {
    if (auto ok = validate_environment("task " + task.name, {{variable, {}}}); !ok) return ok;
    if (auto ok = validate_name("secret", ref.from); !ok) return ok;
    if (task.secrets.contains(variable))
      return fail(invalid(fmt::format("task {}: the variable {} is given twice", task.name, variable),
                          "give it a value, or say from: NAME"));
  }
  return validate_task_environment(task);
}

// Depth-first search that remembers the path, so that a cycle can be shown as the user wrote it.
class CycleFinder {
 public:
  explicit CycleFinder(const std::vector<std::vector<std::uint32_t>>& edges)
      : edges_(edges), marks_(edges.size()) {}

  std::vector<std::uint32_t> find() {
    for (std::uint32_t start = 0; start < edges_.size(); ++start)
      if (auto cycle = visit(start); !cycle.empty()) return cycle;
    return {};
  }

 private:
  enum class Mark : std::uint8_t { fresh, on_path, done };

  std::vector<std::uint32_t> visit(std::uint32_t start) {
    if (marks_[start] != Mark::fresh) return {};
    struct Frame {
      std::uint32_t node;
      std::size_t next;
    };
    std::vector<Frame> path{{start, 0}};  // own stack: a chain of 100,000 tasks must not overflow ours
    marks_[start] = Mark::on_path;
    while (!path.empty()) {
      Frame& top = path.back();
      if (top.next == edges_[top.node].size()) {
        marks_[top.node] = Mark::done;
        path.pop_back();
        continue;
      }
      const std::uint32_t to = edges_[top.node][top.next++];
      if (marks_[to] == Mark::on_path) {
        std::vector<std::uint32_t> cycle;
        auto from =
            std::find_if(path.begin(), path.end(), [&](const Frame& frame) { return frame.node == to; });
        for (; from != path.end(); ++from) cycle.push_back(from->node);
        return cycle;
      }
      if (marks_[to] == Mark::fresh) {
        marks_[to] = Mark::on_path;
        path.push_back({to, 0});
      }
    }
    return {};
  }

  const std::vector<std::vector<std::uint32_t>>& edges_;
  std::vector<Mark> marks_;
};

Result<void> validate_dependencies(const std::vector<TaskSpec>& tasks) {
  std::unordered_map<std::string_view, std::uint32_t> indices;
  for (std::uint32_t i = 0; i < tasks.size(); ++i)
    if (!indices.emplace(tasks[i].name, i).second)
      return fail(
          invalid(fmt::format("two tasks are called {}", tasks[i].name), "give each task its own name"));

  std::vector<std::vector<std::uint32_t>> edges(tasks.size());
  for (std::uint32_t i = 0; i < tasks.size(); ++i)
    for (const auto& [needs, key, names] : dependencies_of(tasks[i]))
      for (const std::string& name : names) {
        const auto found = indices.find(name);
        if (found == indices.end()) {
          std::string known;
          for (std::size_t k = 0; k < tasks.size() && k < 10; ++k) known += (k ? ", " : "") + tasks[k].name;
          return fail(
              invalid(fmt::format("task {} depends on {}, which does not exist", tasks[i].name, name),
                      fmt::format("the tasks of this job are {}{}", known, tasks.size() > 10 ? ", …" : "")));
        }
        edges[i].push_back(found->second);
      }

  const std::vector<std::uint32_t> cycle = CycleFinder(edges).find();
  if (cycle.empty()) return {};
  std::string shown;
  for (const std::uint32_t place : cycle) shown += tasks[place].name + " -> ";
  return fail(invalid("the tasks wait for each other in a circle: " + shown + tasks[cycle.front()].name,
                      "take one of these dependencies out"));
}

}  // namespace

std::array<Dependencies, 3> dependencies_of(const TaskSpec& task) {
  return {Dependencies{Needs::success, "depends_on", task.depends_on},
          Dependencies{Needs::end, "after", task.after},
          Dependencies{Needs::failure, "after_failure", task.after_failure}};
}

const ReservedTags* owner_of_tag(std::string_view name, const std::vector<ReservedTags>& reserved) {
  const auto found = std::find_if(reserved.begin(), reserved.end(),
                                  [&](const ReservedTags& one) { return name.starts_with(one.prefix); });
  return found == reserved.end() ? nullptr : &*found;
}

Tags own_tags(const Tags& tags, const std::vector<ReservedTags>& reserved) {
  Tags own = tags;
  std::erase_if(own, [&](const auto& tag) { return owner_of_tag(tag.first, reserved) != nullptr; });
  return own;
}

std::string describe(const Resources& resources) {
  std::string text = resources.cores % 1000 == 0 ? fmt::format("{} core", resources.cores / 1000)
                                                 : fmt::format("{:g} core", resources.cores / 1000.0);
  if (resources.cores != 1000) text += "s";
  if (resources.memory > 0) text += ", " + format_bytes(resources.memory);
  if (resources.gpus > 0) text += fmt::format(", {} GPU{}", resources.gpus, resources.gpus == 1 ? "" : "s");
  return text;
}

Result<void> validate_name(std::string_view kind, std::string_view name) {
  const auto wrong = [&](std::string_view why) {
    return fail(
        invalid(fmt::format("'{}' cannot be the name of a {}: {}", name.substr(0, 200), kind, why),
                fmt::format("use 1 to {} letters, digits, '-', '_' or '.', beginning with a letter or digit",
                            JobLimits::name_length_max)));
  };
  if (name.empty()) return wrong("it is empty");
  if (name.size() > JobLimits::name_length_max)
    return wrong(fmt::format("it has {} characters", name.size()));
  for (const char c : name)
    if (!is_plain(c))
      return wrong(c >= ' ' && c < 127 ? fmt::format("it contains '{}'", c)
                                       : "it contains a byte that is not plain text");
  if (name[0] == '-' || name[0] == '_' || name[0] == '.')
    return wrong(fmt::format("it begins with '{}'", name[0]));
  return {};
}

Result<void> validate(const JobSpec& spec) {
  if (!spec.name.empty())
    if (auto named = validate_name("job", spec.name); !named) return named;
  if (parse_job_id(spec.name))
    return fail(invalid(fmt::format("a job cannot be called {}: that is how ids look", spec.name),
                        "choose another name"));
  if (std::abs(spec.priority) > JobLimits::priority_max)
    return fail(invalid(fmt::format("priority is {}", spec.priority),
                        "priority goes from -1000 to 1000, higher first"));
  if (spec.tasks.empty()) return fail(invalid("the job has no tasks", "add at least one under tasks:"));
  if (spec.tasks.size() > JobLimits::entries_max)
    return fail(invalid(fmt::format("the job lists {} tasks", spec.tasks.size()),
                        fmt::format("list at most {}; use count: N for many alike", JobLimits::entries_max)));
  if (auto ok = validate_environment("the job", spec.environment); !ok) return ok;
  for (const TaskSpec& task : spec.tasks)
    if (auto ok = validate_task(task); !ok) return ok;
  return validate_dependencies(spec.tasks);
}

}  // namespace slipway
