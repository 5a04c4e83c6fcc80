#include "container/contain.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "base/file.h"
#include "container/docker.h"
#include "container/driver.h"
#include "container/execute.h"
#include "container/image.h"
#include "container/namespaces.h"
#include "container/parent_death.h"
#include "container/plan.h"
#include "container/root.h"
#include "container/unpack.h"

namespace slipway::container {
namespace {

std::string value(const Environment& environment, const std::string& name) {
  const auto found = environment.find(name);
  return found == environment.end() ? std::string() : found->second;
}

std::string node_name(const Environment& environment) {
  if (std::string name = value(environment, "SLIPWAY_NODE"); !name.empty()) return name;
  char name[HOST_NAME_MAX + 1] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "this machine";
}

// A container cannot make a folder that is missing outside, where the process itself could have.
Result<void> make_shares(const std::vector<Share>& wanted) {
  for (const Share& share : wanted) {
    if (::access(share.path.c_str(), F_OK) == 0) continue;
    if (share.read_only)
      return fail(ErrorCode::not_found, fmt::format("{} is to be mounted and is not there", share.path),
                  "make it on the node, or leave it out");
    if (auto made = make_folders(share.path); !made) return made;
  }
  return {};
}

Result<std::string> rootfs_folder(const std::string& given, const Environment& environment) {
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(given.c_str(), nullptr), std::free);
  if (!real) {
    Error error = system_error("cannot use the root file system " + given, errno);
    error.hint = fmt::format("it has to be on node {}, or on a file system that all nodes share",
                             node_name(environment));
    return fail(error);
  }
  const std::string path = real.get();
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return fail(system_error("cannot open " + path, errno));
  if (path == "/")
    return fail(ErrorCode::invalid, "the machine's own root cannot be a container's",
                "leave the container out to run on the machine itself");
  if (S_ISREG(status.st_mode))
    return unpack_limits(environment).and_then([&](const UnpackLimits& limits) {
      return unpacked(path, environment, limits);
    });
  if (!S_ISDIR(status.st_mode))
    return fail(ErrorCode::invalid, fmt::format("{} is neither a folder nor a tarball", given),
                "give a folder with a root file system, or a .tar, .tar.gz, .tar.xz or .tar.zst of one");
  if (auto checked = check_rootfs(path, given); !checked) return fail(checked.error());
  return path;
}

std::string passwd_for(const std::string& rootfs, const Environment& environment) {
  const ReadFolder read_folder = read_from(rootfs);
  const Result<std::string> passwd = read_file(rootfs + resolve(read_folder, "/etc/passwd"));
  const std::string before = passwd.value_or("");
  const std::string after =
      with_user(before, ::geteuid(), ::getegid(), value(environment, "USER"), value(environment, "HOME"));
  return after == before ? std::string() : after;
}

Error run_rootfs(const ContainOptions& options, Environment environment, const std::string& working_folder) {
  const ParentDeath parent_death;
  const Result<std::string> rootfs = rootfs_folder(options.rootfs, environment);
  if (!rootfs) return rootfs.error();
  ContainerRequest request;
  request.shares = shares(working_folder, environment, options.mounts);
  if (auto made = make_shares(request.shares); !made) return made.error();
  request.devices = plain_devices();
  for (std::string& device : accelerator_devices()) request.devices.push_back(std::move(device));
  request.driver_files = driver_libraries();
  request.scratch = {value(environment, "HOME"), value(environment, "TMPDIR")};
  request.passwd = passwd_for(*rootfs, environment);
  request.has_machine_shm = ::access("/dev/shm", F_OK) == 0;
  if (!request.driver_files
           .empty()) {  // last: a root file system that brings its own compatible ones goes first
    std::string& path = environment["LD_LIBRARY_PATH"];
    path += (path.empty() ? "" : ":") + std::string(driver_folder);
  }
  const std::vector<Step> steps = plan(read_from(*rootfs), request);
  if (auto entered = enter_root(*rootfs, steps, working_folder, request.shares); !entered)
    return entered.error();
  if (auto dropped = drop_privileges(); !dropped) return dropped.error();
  parent_death.restore();
  return execute(options.command, environment, "in rootfs " + options.rootfs);
}

bool has_user_range(const Environment& environment) {
  const Result<std::string> ranges = read_file("/etc/subuid");
  if (!ranges) return false;
  const std::string text = "\n" + *ranges;
  const std::string name = value(environment, "USER");
  return text.find(fmt::format("\n{}:", ::geteuid())) != std::string::npos ||
         (!name.empty() && text.find("\n" + name + ":") != std::string::npos);
}

PodmanFacts podman_facts(const Environment& environment) {
  const auto any_of = [](std::initializer_list<const char*> paths) {
    return std::any_of(paths.begin(), paths.end(),
                       [](const char* path) { return ::access(path, F_OK) == 0; });
  };
  PodmanFacts facts;
  facts.maps_users = ::geteuid() != 0 && has_user_range(environment);
  facts.has_init =
      any_of({"/usr/libexec/podman/catatonit", "/usr/local/libexec/podman/catatonit",
              "/usr/lib/podman/catatonit", "/usr/local/lib/podman/catatonit", "/usr/bin/catatonit"});
  facts.has_crun = find_program("crun", environment).has_value();
  facts.has_gpu_spec = any_of({"/etc/cdi/nvidia.yaml", "/var/run/cdi/nvidia.yaml"});
  // podman lowers its own limit of processes to the number of process ids there are.
  const Result<std::string> pids = read_file("/proc/sys/kernel/pid_max");
  const rlim_t pid_max = pids ? std::strtoul(pids->c_str(), nullptr, 10) : 32768;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) facts.files_max = limit.rlim_max;
  if (::getrlimit(RLIMIT_NPROC, &limit) == 0) facts.processes_max = std::min(limit.rlim_max, pid_max);
  return facts;
}

Error run_docker(const ImageRun& run, const Environment& environment, const std::string& node) {
  rlimit limit{};
  DockerFacts facts{::geteuid(), ::getegid()};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) facts.files_max = limit.rlim_max;
  if (auto tied = tie_input_to_lifetime(); !tied) return tied.error();
  const std::string program = find_program("docker", environment).value_or("docker");
  return execute(docker_command(program, run, facts), environment, "on node " + node);
}

Error run_image(const ContainOptions& options, const Environment& environment,
                const std::string& working_folder) {
  ImageRun run{options.image,     options.command,
               working_folder,    shares(working_folder, environment, options.mounts),
               environment,       accelerator_devices(),
               driver_libraries()};
  if (auto made = make_shares(run.shares); !made) return made.error();
  const std::string node = node_name(environment);
  const auto find = [&](const char* program) { return find_program(program, environment).value_or(""); };
  const std::string podman = find("podman");
  if (!podman.empty() && !options.image.ends_with(".sif"))
    return execute(podman_command(podman, run, podman_facts(environment)), environment, "on node " + node);
  const std::string apptainer = find("apptainer").empty() ? find("singularity") : find("apptainer");
  if (!apptainer.empty()) return execute(apptainer_command(apptainer, run), environment, "on node " + node);
  if (has_docker(environment) && !options.image.ends_with(".sif")) return run_docker(run, environment, node);
  if (!podman.empty())
    return {ErrorCode::not_found,
            fmt::format("{} is an Apptainer image and node {} has no apptainer", options.image, node),
            "install apptainer"};
  return {ErrorCode::not_found, fmt::format("no container engine on node {}", node),
          "install podman, apptainer or docker; a root file system (rootfs) needs neither"};
}

}  // namespace

int contain(const ContainOptions& options) {
  std::error_code error;
  const std::string working_folder = std::filesystem::current_path(error).string();
  const Environment environment = read_environment();
  const Error failure =
      error ? Error{ErrorCode::not_found, "the working folder is gone: " + error.message(), ""}
      : options.rootfs.empty() ? run_image(options, environment, working_folder)
                               : run_rootfs(options, environment, working_folder);
  std::fprintf(stderr, "error: %s%s%s\n", failure.what.c_str(), failure.hint.empty() ? "" : "; ",
               failure.hint.c_str());
  return failure.code == ErrorCode::not_found ? 127 : 126;
}

}  // namespace slipway::container
