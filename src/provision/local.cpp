#include "provision/local.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <functional>

#include "base/log.h"
#include "base/subprocess.h"

namespace slipway::provision {
namespace {

constexpr Duration terminated_wait = 2s;  // from SIGTERM to SIGKILL
constexpr Duration lived_long = 5s;
constexpr Duration wait_max = 5s;

// Two services on one machine begin with different ones.
CoreList cores_from(const std::string& data) {
  CoreList cores = usable_cores();
  if (!cores.empty())
    std::rotate(cores.begin(),
                cores.begin() + static_cast<std::ptrdiff_t>(std::hash<std::string>{}(data) % cores.size()),
                cores.end());
  return cores;
}

std::string key_of(const NodeRecord& node) { return node.workspace + "." + node.name; }

}  // namespace

LocalProvisioner::LocalProvisioner(net::Loop& loop, LocalOptions options)
    : loop_(loop), options_(std::move(options)), cores_(cores_from(options_.data)) {}
LocalProvisioner::~LocalProvisioner() = default;

std::string LocalProvisioner::folder_of(const NodeRecord& node) const {
  return options_.data + "/nodes/" + key_of(node);
}

void LocalProvisioner::want(const std::vector<NodeRecord>& nodes) {
  if (leaving_) return;
  const bool first = agents_.empty();
  for (auto& [key, agent] : agents_) agent.wanted = false;
  for (const NodeRecord& node : nodes) {
    Agent& agent = agents_[key_of(node)];
    const bool fresh = agent.pid == 0 && !agent.again;
    agent.node = node;
    agent.wanted = true;
    if (fresh) bring_up(key_of(node));
  }
  if (first) adopt_strays();
}

// Nodes of an earlier run that still exist but are no longer wanted: the service says so when they connect.
void LocalProvisioner::adopt_strays() {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(options_.data + "/nodes", error)) {
    const std::string key = entry.path().filename().string();
    const std::size_t dot = key.find('.');
    if (dot == std::string::npos || agents_.contains(key)) continue;
    const std::string folder = entry.path().string();
    if (FileLock::holder(folder + "/agent.lock") == 0 && FileLock::holder(folder + "/keeper.lock") == 0)
      continue;
    Agent& agent = agents_[key];
    agent.node.workspace = key.substr(0, dot);
    agent.node.name = key.substr(dot + 1);
    agent.wanted = false;
    bring_up(key);
  }
}

void LocalProvisioner::bring_up(const std::string& key) {
  Agent& agent = agents_.at(key);
  const std::string folder = folder_of(agent.node);
  if (auto made = make_folders(folder, 0700); !made)
    log::error("agent.folder", {{"node", agent.node.name}, {"why", made.error().what}});
  choose_cores(agent, folder);
  agent.pid = FileLock::holder(folder + "/agent.lock");
  agent.child = false;
  if (agent.pid == 0) spawn(agent);
  follow(key);
}

void LocalProvisioner::choose_cores(Agent& agent, const std::string& folder) {
  if (!agent.cores.empty()) return;
  const std::string file = folder + "/" + std::string(cores_file);
  if (const Result<std::string> known = read_file(file)) {
    agent.cores = parse_cores(*known);
    return cores_.hold(agent.cores);
  }
  agent.cores = cores_.take(agent.node.total.cores);
  if (agent.cores.empty()) return;
  if (auto written = write_file_durably(file, format_cores(agent.cores), 0600); !written)
    log::error("agent.cores", {{"node", agent.node.name}, {"why", written.error().what}});
}

void LocalProvisioner::spawn(Agent& agent) {
  const std::string folder = folder_of(agent.node);
  std::vector<std::string> arguments{
      options_.program,    "node",    "run",           "--service",         options_.url, "--token-file",
      options_.token_file, "--name",  agent.node.name, "--folder",          folder,       "--data",
      options_.data,       "--local", "--workspace",   agent.node.workspace};
  const auto add = [&](const char* flag, std::string value) {
    arguments.emplace_back(flag);
    arguments.push_back(std::move(value));
  };
  if (!agent.node.pool.empty()) add("--pool", agent.node.pool);
  if (!agent.node.address.empty()) add("--address", agent.node.address);
  if (agent.node.total.cores > 0) add("--cores", fmt::format("{:g}", agent.node.total.cores / 1000.0));
  if (agent.node.total.memory > 0) add("--memory", std::to_string(agent.node.total.memory));
  add("--gpus",
      agent.node.gpu_indices.empty() ? "none" : fmt::format("{}", fmt::join(agent.node.gpu_indices, ",")));
  // In a session of its own and without our sockets: an agent outlives us.
  auto started = Subprocess::start({.argv = std::move(arguments),
                                    .output = Stdio::file,
                                    .error_output = Stdio::output,
                                    .output_file = folder + "/agent.log",
                                    .group = ProcessGroup::session});
  agent.child = started.has_value();
  agent.pid = started ? started->release() : 0;
  agent.started_at = clock_.now();
  if (!started)
    log::error("agent.start", {{"node", agent.node.name}, {"why", started.error().what}});
  else
    log::debug("agent.started", {{"node", agent.node.name}, {"pid", agent.pid}});
}

void LocalProvisioner::follow(const std::string& key) {
  Agent& agent = agents_.at(key);
  agent.watch.reset();
  agent.pidfd = Fd(agent.pid > 0 ? static_cast<int>(::syscall(SYS_pidfd_open, agent.pid, 0)) : -1);
  // Gone already, or never begun: the wait of ended() keeps this from spinning.
  if (!agent.pidfd) return loop_.post([this, key] { ended(key); });
  agent.watch = loop_.watch(agent.pidfd.get(), [this, key] { ended(key); });
}

void LocalProvisioner::ended(const std::string& key) {
  const auto found = agents_.find(key);
  if (found == agents_.end()) return;
  Agent& agent = found->second;
  agent.watch.reset();
  agent.pidfd.reset();
  if (agent.child) ::waitpid(agent.pid, nullptr, WNOHANG);
  agent.child = false;
  agent.pid = 0;
  const std::string folder = folder_of(agent.node);
  if (leaving_) return check_gone();
  if (!agent.wanted && FileLock::holder(folder + "/keeper.lock") == 0) {  // it and all it ran are gone
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
    cores_.give_back(agent.cores);
    agents_.erase(found);
    return;
  }
  const bool soon = clock_.now() - agent.started_at > lived_long;
  agent.wait = soon ? Duration(0) : std::min<Duration>(wait_max, agent.wait * 2 + 20ms);
  agent.again = loop_.after(agent.wait, [this, key] {
    const auto again = agents_.find(key);
    if (again == agents_.end() || leaving_) return;
    const auto last = std::move(again->second.again);
    bring_up(key);
  });
}

void LocalProvisioner::restart(const std::string& workspace, const std::string& node) {
  const auto found = agents_.find(workspace + "." + node);
  if (found == agents_.end() || found->second.pid == 0) return;  // it is just being started
  log::warning("agent.stuck", {{"node", node}, {"pid", found->second.pid}, {"then", "it is started again"}});
  ::syscall(SYS_pidfd_send_signal, found->second.pidfd.get(), SIGKILL, nullptr, 0);
}

void LocalProvisioner::start_no_more() {
  leaving_ = true;
  for (auto& [key, agent] : agents_) agent.again.reset();
}

void LocalProvisioner::wait_until_gone(Duration limit, std::function<void()> done) {
  gone_ = std::move(done);
  gone_limit_ = loop_.after(limit, [this] { end_agents(SIGTERM); });
  check_gone();
}

// Those that could not be sent a message: just started, or stopped.
void LocalProvisioner::end_agents(int signal) {
  for (const auto& [key, agent] : agents_)
    if (agent.pid != 0) {
      log::warning("agent.stays", {{"node", agent.node.name}, {"pid", agent.pid}});
      ::syscall(SYS_pidfd_send_signal, agent.pidfd.get(), signal, nullptr, 0);
    }
  const auto last = std::exchange(gone_limit_, loop_.after(terminated_wait, [this, signal] {
    signal == SIGTERM ? end_agents(SIGKILL) : leave();
  }));
}

void LocalProvisioner::check_gone() {
  if (gone_ &&
      std::none_of(agents_.begin(), agents_.end(), [](const auto& entry) { return entry.second.pid != 0; }))
    leave();
}

// A keeper whose agent could not end it is left. What it runs ends with it.
void LocalProvisioner::leave() {
  for (const auto& [key, agent] : agents_)
    if (const pid_t keeper = FileLock::holder(folder_of(agent.node) + "/keeper.lock"); keeper > 0)
      ::kill(keeper, SIGTERM);
  const auto last = std::exchange(gone_limit_, nullptr);
  std::exchange(gone_, nullptr)();
}

}  // namespace slipway::provision
