// Nodes of clusters and jobs: where they are, and a shell on them.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/shell.h"
#include "base/subprocess.h"
#include "cli/az/batchai.h"

namespace slipway::cli::az {
namespace {

struct NodeOptions : Named {
  std::string cluster, job, node, command, key, password;
  std::vector<std::string> forwards;
};

Outcome<Value> logins(Arm& arm, const std::string& path) {
  return arm.list(path + "/listRemoteLoginInformation", {}, "POST");
}

Outcome<Value> list_of_cluster(Arm& arm, const NodeOptions& options) {
  if (const auto named = need(options.cluster, "-c", "slipway batchai cluster node list -c nc6"); !named)
    return give_up(named);
  return logins(arm, arm.cluster(options, options.cluster));
}

Outcome<Value> list_of_job(Arm& arm, const NodeOptions& options) {
  if (const auto named = need(options.job, "-j", "slipway batchai job node list -j fit"); !named)
    return give_up(named);
  return logins(arm, arm.job(options, options.job));
}

// local:host:port, or just a port of the node's own.
Outcome<std::string> forward(const std::string& given) {
  const auto colons = std::count(given.begin(), given.end(), ':');
  if (colons == 2) return given;
  if (colons == 0 && !given.empty() && given.find_first_not_of("0123456789") == std::string::npos)
    return fmt::format("{0}:localhost:{0}", given);
  return misuse(fmt::format("-L {}: it should be LOCAL:HOST:PORT", given), "-L 8888:localhost:8888");
}

Outcome<std::vector<std::string>> ssh_line(const NodeOptions& options, const Value& login,
                                           const std::string& user) {
  // Nodes come and go, and another may stand at the same address tomorrow.
  std::vector<std::string> line{"ssh",
                                "-o",
                                "StrictHostKeyChecking=no",
                                "-o",
                                "UserKnownHostsFile=/dev/null",
                                "-o",
                                "LogLevel=ERROR",
                                "-p",
                                text_at(login, {"port"})};
  if (!options.key.empty()) line.insert(line.end(), {"-i", options.key});
  for (const std::string& each : options.forwards) {
    const Outcome<std::string> parsed = forward(each);
    if (!parsed) return give_up(parsed);
    line.insert(line.end(), {"-L", *parsed});
  }
  if (options.command.empty())
    line.push_back("-N");
  else if (is_terminal(STDIN_FILENO))
    line.push_back("-t");
  line.push_back(user + "@" + text_at(login, {"ipAddress"}));
  if (!options.command.empty()) line.push_back("bash -ilc " + quote_for_shell(options.command));
  return line;
}

bool is_installed(const std::string& command) {
  return find_program(command, read_environment()).has_value();
}

Outcome<int> run(std::vector<std::string> line) {
  const auto ran =
      run_to_exit({.argv = std::move(line), .input = Stdio::inherit, .group = ProcessGroup::inherit});
  if (!ran) return give_up(ran);
  return ran->status.exit_code();
}

// A node of this machine is a share of it: no way leads there but the one we are on.
bool is_here(const Value& login) {
  const std::string address = text_at(login, {"ipAddress"});
  return address.starts_with("127.") || address == "::1";
}

Outcome<int> run_ssh(std::vector<std::string> line, const std::string& password) {
  if (!is_installed("ssh"))
    return refuse("there is no ssh on this machine", "commands on nodes go through it",
                  "install openssh-client");
  if (!password.empty()) {
    if (!is_installed("sshpass")) {
      std::fputs("sshpass is not installed: ssh asks for the password itself\n", stderr);
    } else {
      ::setenv("SSHPASS", password.c_str(), 1);
      line.insert(line.begin(), {"sshpass", "-e"});
    }
  }
  return run(std::move(line));
}

Outcome<int> exec_on(Arm& arm, const NodeOptions& options, const std::string& cluster_path,
                     const Value& nodes) {
  if (options.command.empty() && options.forwards.empty()) return ExitCode::done;
  const Value* login = nullptr;
  for (const Value& node : nodes.items)
    if (login == nullptr && (options.node.empty() || text_at(node, {"nodeId"}) == options.node))
      login = &node;
  if (login == nullptr)
    return refuse(options.node.empty() ? "there is no node to run on" : "there is no node " + options.node,
                  {}, "slipway batchai cluster node list -c NAME -o table");
  if (is_here(*login) && options.forwards.empty()) {
    ::setenv("SLIPWAY_NODE", text_at(*login, {"nodeId"}).c_str(), 1);
    return run({"bash", is_terminal(STDIN_FILENO) ? "-ilc" : "-lc", options.command});
  }
  const Outcome<Value> cluster = arm.get(cluster_path);
  if (!cluster) return give_up(cluster);
  const std::string user = text_at(*cluster, {"properties", "userAccountSettings", "adminUserName"});
  const auto line = ssh_line(options, *login, user);
  if (!line) return give_up(line);
  return run_ssh(*line, options.password);
}

Outcome<int> exec_on_cluster(Context& context, const NodeOptions& options) {
  Outcome<Arm> arm = Arm::open(context, options);
  if (!arm) return give_up(arm);
  const Outcome<Value> nodes = list_of_cluster(*arm, options);
  if (!nodes) return give_up(nodes);
  return exec_on(*arm, options, arm->cluster(options, options.cluster), *nodes);
}

Outcome<int> exec_on_job(Context& context, const NodeOptions& options) {
  Outcome<Arm> arm = Arm::open(context, options);
  if (!arm) return give_up(arm);
  const Outcome<Value> nodes = list_of_job(*arm, options);
  if (!nodes) return give_up(nodes);
  const Outcome<Value> job = arm->get(arm->job(options, options.job));
  if (!job) return give_up(job);
  return exec_on(*arm, options, text_at(*job, {"properties", "cluster", "id"}), *nodes);
}

void add_exec(Command& command, NodeOptions& options) {
  command.text("-n,--node-id,--node NAME", options.node, "the node (default: the first)")
      .text("--exec COMMAND", options.command, "what to run there, in a login shell")
      .texts("-L,--address LOCAL:HOST:PORT", options.forwards, "forward a port; given several times, several")
      .text("-k,--ssh-private-key FILE", options.key, "the private key to log in with")
      .text("-p,--password PASSWORD", options.password, "the password to log in with");
}

}  // namespace

void add_cluster_nodes(Command& cluster, Context& context) {
  constexpr const char* flag = "-c,--cluster,--cluster-name NAME";
  Command node =
      cluster.verb("node", "The nodes of a cluster", "slipway batchai cluster node list -c nc6 -o table");
  auto listed_options = std::make_shared<NodeOptions>();
  Command list = node.verb("list", "List nodes and how to reach them",
                           "slipway batchai cluster node list -c nc6 -o table");
  add_workspace(list, *listed_options).text(flag, listed_options->cluster, "the cluster");
  runs(list, context, listed_options, node_view(), list_of_cluster);
  auto old_options = std::make_shared<NodeOptions>();
  Command old = cluster.verb("list-nodes", "List nodes and how to reach them",
                             "slipway batchai cluster list-nodes -n nc6 -o table");
  add_workspace(old, *old_options)
      .text("-n,--name,-c,--cluster-name NAME", old_options->cluster, "the cluster");
  old.hidden();
  runs(old, context, old_options, node_view(), list_of_cluster);
  auto exec_options = std::make_shared<NodeOptions>();
  Command exec = node.verb("exec", "Run a command on a node, or forward its ports",
                           "slipway batchai cluster node exec -c nc6 --exec nvidia-smi");
  add_workspace(exec, *exec_options).text(flag, exec_options->cluster, "the cluster");
  add_exec(exec, *exec_options);
  exec.runs([&context, exec_options] { return exec_on_cluster(context, *exec_options); });
}

void add_job_nodes(Command& job, Context& context) {
  constexpr const char* flag = "-j,--job,--job-name NAME";
  Command node = job.verb("node", "The nodes of a job", "slipway batchai job node list -j fit -o table");
  auto listed_options = std::make_shared<NodeOptions>();
  Command list =
      node.verb("list", "List nodes and how to reach them", "slipway batchai job node list -j fit -o table");
  add_experiment(list, *listed_options).text(flag, listed_options->job, "the job");
  runs(list, context, listed_options, node_view(), list_of_job);
  auto old_options = std::make_shared<NodeOptions>();
  Command old =
      job.verb("list-nodes", "List nodes and how to reach them", "slipway batchai job list-nodes -n fit");
  add_experiment(old, *old_options).text("-n,--name,-j,--job,--job-name NAME", old_options->job, "the job");
  old.hidden();
  runs(old, context, old_options, node_view(), list_of_job);
  auto exec_options = std::make_shared<NodeOptions>();
  Command exec = node.verb("exec", "Run a command on a node of a job, or forward its ports",
                           "slipway batchai job node exec -j fit -L 6006:localhost:6006");
  add_experiment(exec, *exec_options).text(flag, exec_options->job, "the job");
  add_exec(exec, *exec_options);
  exec.runs([&context, exec_options] { return exec_on_job(context, *exec_options); });
}

}  // namespace slipway::cli::az
