#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <climits>

#include "cli/commands/commands.h"
#include "wire/records.h"

namespace slipway::cli {
namespace {

std::string start_text(const Value& start) {
  if (start.is_null()) return "";
  std::string text = start.text_at("state");
  if (!start.text_at("detail").empty()) text += ": " + start.text_at("detail");
  if (start.text_at("state") == "failed" && !start.text_at("last_lines").empty())
    text += "\n" + start.text_at("last_lines");
  return text;
}

std::string history_text(const Value& node) {
  std::string text;
  for (const Value& entry : node.items_at("steps"))
    text +=
        fmt::format("{}{} {}{}{}", text.empty() ? "" : "\n", time_text(entry, "time"), entry.text_at("state"),
                    entry.text_at("reason").empty() ? "" : ": ", entry.text_at("reason"));
  return text;
}

// 1 of 2 used: index 0 granted, index 1 free
std::string gpus_text(const Value& node) {
  const std::vector<Value> granted = node.items_at("gpus_granted");
  if (node.count_at("gpus") == 0 && granted.empty()) return "";
  std::string text = fmt::format("{} of {} used; indices {}", granted.size(), node.text_at("gpus"),
                                 joined(node.items_at("gpu_indices"), ", "));
  if (!granted.empty()) text += fmt::format(", granted {}", joined(granted, ", "));
  return text;
}

std::string cpu_limit_text(const Value& node) {
  const std::string reason = node.text_at("cpu_limit_reason");
  return node.text_at("cpu_limit") + (reason.empty() ? "" : ": " + reason);
}

std::string describe(const Context& context, const Value& node) {
  const Value& used = node.at("used");
  const auto of = [&](const char* key) {
    return fmt::format("{} of {} used", used.text_at(key), node.text_at(key));
  };
  return format_fields({
      {"name", node.text_at("name")},
      {"pool", node.text_at("pool")},
      {"state",
       node.text_at("state") + (node.text_at("reason").empty() ? "" : ": " + node.text_at("reason"))},
      {"since", ago(context, node.time_at("changed_at"))},
      {"kind", node.is_true_at("low_priority") ? "low-priority: may be evicted" : "dedicated"},
      {"evicted by", node.text_at("evict_by")},
      {"start task", start_text(node.at("start_task"))},
      {"address", node.text_at("address")},
      {"machine", node.text_at("host") + (node.is_true_at("local") ? " (started by the service)" : "")},
      {"cores", of("cores")},
      {"memory", fmt::format("{} of {} used", format_bytes(used.count_at("memory")),
                             format_bytes(node.count_at("memory")))},
      {"gpus", gpus_text(node)},
      {"core limit", cpu_limit_text(node)},
      {"running", joined(node.items_at("running"), "\n")},
      {"notes", joined(node.items_at("notes"), "\n")},
      {"history", history_text(node)},
  });
}

Outcome<int> show(Context& context, const Outcome<Value>& node) {
  if (!node) return give_up(node);
  return print(context, *node, node->text_at("name"), [&] { return describe(context, *node); });
}

Outcome<int> list(Context& context, const std::string& pool) {
  const auto used = [](const Value& node) {
    return fmt::format("{}/{}", node.at("used").text_at("cores"), node.text_at("cores"));
  };
  const auto priority = [](const Value& node) -> std::string {
    return node.is_true_at("low_priority") ? "low" : "dedicated";
  };
  const auto memory = [](const Value& node) { return format_bytes(node.count_at("memory")); };
  const auto running = [](const Value& node) { return joined(node.items_at("running"), " "); };
  return print_list(
      context,
      {.target = with_query(resource({"nodes"}), {{"pool", pool}}),
       .columns = {column("NODE", "name"), drop(6, column("POOL", "pool")), state_column(),
                   drop(3, {{"PRIORITY"}, priority}), drop(7, {{"CORES", true}, used}),
                   drop(2, {{"MEMORY", true}, memory}), drop(4, number_column("GPUS", "gpus")),
                   drop(1, column("ADDRESS", "address")), drop(8, age_column(context, "SINCE", "changed_at")),
                   drop(5, {{"RUNNING"}, running}), wide(column("HOST", "host")), column("REASON", "reason")},
       .empty = "there are no nodes; slipway pool create lab --nodes 2 starts some here"});
}

std::string host_name() {
  char name[HOST_NAME_MAX + 1] = {};
  return ::gethostname(name, sizeof name - 1) == 0 && name[0] != '\0' ? name : "node";
}

Outcome<void> read_gpus(const std::string& text, NodeRunOptions& options) {
  if (text.empty()) return {};
  options.gpus.emplace();
  if (text == "none") return {};
  for (std::string_view rest = text; !rest.empty();) {
    std::uint32_t index = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), index);
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    if (error != std::errc{} || (!rest.empty() && rest.front() != ',') || rest == ",")
      return misuse(fmt::format("--gpus: '{}' is not a list of GPU indices", text),
                    "write it like 0,2, or none");
    options.gpus->push_back(index);
    if (!rest.empty()) rest.remove_prefix(1);
  }
  return {};
}

Outcome<int> run_agent(Context& context, NodeRunOptions options) {
  const Endpoint endpoint = find_service(context.settings());
  options.service = endpoint.pinned_url();
  options.token_file = endpoint.token_file;
  options.data = data_folder(context.settings());
  if (options.name.empty()) options.name = host_name();
  if (options.folder.empty()) options.folder = options.data + "/nodes/" + options.name;
  return context.programs().node_run(options);
}

// Changes a node and shows it.
void add_change(Command& noun, Context& context, const std::string& verb, const std::string& about) {
  auto name = std::make_shared<std::string>();
  noun.verb(verb, about, fmt::format("slipway node {} lab-1", verb))
      .argument("NODE", *name, "the node")
      .runs([&context, name, verb] {
        return show(context, context.service().send("POST", resource({"nodes", *name, verb}), "{}"));
      });
}

Outcome<int> evict(Context& context, const std::string& name, const std::optional<Duration>& notice,
                   const std::string& reason) {
  std::vector<std::pair<std::string, std::string>> body;
  if (notice) body.emplace_back("notice", fmt::format("{}", seconds(*notice)));
  if (!reason.empty()) body.emplace_back("reason", wire::quote(reason));
  return show(context,
              context.service().send("POST", resource({"nodes", name, "evict"}), wire::format_object(body)));
}

void add_evict(Command& node, Context& context) {
  auto name = std::make_shared<std::string>();
  auto reason = std::make_shared<std::string>();
  auto notice = std::make_shared<std::optional<Duration>>();
  node.verb("evict", "Evict a node: its tasks get notice and are queued again",
            "slipway node evict lab-1 --notice 30s")
      .argument("NODE", *name, "the node")
      .duration("--notice TIME", *notice, "time for tasks to save their state (default: the pool's)")
      .text("--reason TEXT", *reason, "why, for its tasks and its history")
      .runs([&context, name, notice, reason] { return evict(context, *name, *notice, *reason); });
}

void add_remove(Command& node, Context& context) {
  auto name = std::make_shared<std::string>();
  auto rule = std::make_shared<std::string>("requeue");
  node.verb("delete", "Remove a node from its pool", "slipway node delete lab-1")
      .alias("remove")
      .argument("NODE", *name, "the node")
      .word("--deallocation RULE", *rule, {"requeue", "terminate", "task_completion", "retained_data"},
            "what happens to its tasks (default requeue)")
      .runs([&context, name, rule] {
        return show(context,
                    context.service().send("POST", resource({"nodes", *name, "remove"}),
                                           wire::format_object({{"deallocation", wire::quote(*rule)}})));
      });
}

struct JoinFlags {
  std::string pool;
  std::optional<std::uint32_t> uses;
};

// One line that is pasted on the other machine. The token goes through a pipe: a command line is seen by all.
Outcome<int> join_command(Context& context, const JoinFlags& flags) {
  const Outcome<Value> service = context.service().get(resource({"service"}));
  if (!service) return give_up(service);
  std::string url = service->text_at("join_url");
  if (!is_on_loopback(context.service().url())) {
    url = context.service().url();
    if (const std::string pin = service->text_at("fingerprint"); !pin.empty()) url += "#sha256:" + pin;
  }
  if (url.empty())
    return refuse("no other machine can join this service",
                  "it listens on " + service->text_at("url") + " only",
                  "slipway down, then slipway up --detach --listen 0.0.0.0:8470");
  std::vector<std::pair<std::string, std::string>> body{{"name", "\"join\""}, {"role", "\"node\""}};
  if (flags.uses) body.emplace_back("uses", std::to_string(*flags.uses));
  const Outcome<Value> token =
      context.service().send("POST", resource({"tokens"}), wire::format_object(body));
  if (!token) return give_up(token);
  const std::string line =
      fmt::format("echo {} | slipway node run --service '{}'{} --token-file -", token->text_at("token"), url,
                  flags.pool.empty() ? "" : " --pool " + flags.pool);
  context.say(
      fmt::format("It lets in {}; slipway token revoke {} takes it back.",
                  flags.uses.value_or(1) == 1 ? "one machine" : fmt::format("{} machines", *flags.uses),
                  token->text_at("id")));
  const Value value = {{"command", line}, {"service", url}, {"token", token->text_at("id")}};
  return print(context, value, line, line + "\n");
}

void add_join_command(Command& node, Context& context) {
  auto flags = std::make_shared<JoinFlags>();
  node.verb("join-command", "Print the line that joins another machine",
            "slipway node join-command --pool rack")
      .text("--pool POOL", flags->pool, "the pool to join (default: the only one)")
      .number("--uses N", flags->uses, "how many machines it lets in (default 1)")
      .runs([&context, flags] { return join_command(context, *flags); });
}

void add_start_logs(Command& node, Context& context) {
  auto name = std::make_shared<std::string>();
  auto stderr_only = std::make_shared<bool>(false);
  node.verb("logs", "Print the output of a node's start task", "slipway node logs lab-1")
      .argument("NODE", *name, "the node")
      .flag("--stderr", *stderr_only, "stderr instead of stdout")
      .runs([&context, name, stderr_only]() -> Outcome<int> {
        net::Client::Options options;
        options.on_piece = [](std::string_view piece) {
          write_out(piece);
          return true;
        };
        const Outcome<net::Response> answer = context.service().request(
            "GET", resource({"nodes", *name, "start-task", *stderr_only ? "stderr" : "stdout"}), options);
        if (!answer) return give_up(answer);
        return ExitCode::done;
      });
}

void add_run_agent(Command& node, Context& context) {
  auto options = std::make_shared<NodeRunOptions>();
  auto cores = std::make_shared<std::optional<double>>();
  auto memory = std::make_shared<std::optional<Bytes>>();
  auto gpus = std::make_shared<std::string>();
  node.verb("run", "Join this machine as a node; runs until stopped",
            "slipway node run --service http://head:8470 --token-file join.token --pool lab")
      .text("--pool POOL", options->pool, "the pool to join (default: the only one)")
      .text("--name NAME", options->name, "the node's name (default: the host name)")
      .text("--address ADDRESS", options->address, "where other nodes reach the processes of this one")
      .text("--folder DIR", options->folder, "where it keeps its files (default: <data>/nodes/<name>)")
      .decimal("--cores N", *cores, "how many cores to offer (default: all)")
      .size("--memory SIZE", *memory, "how much memory to offer (default: all)")
      .text("--gpus LIST", *gpus, "indices of the GPUs to offer, like 0,2, or none (default: all)")
      .flag("--local", options->local, "started by the service on its own machine")
      .text("--workspace NAME", options->workspace, "of a node that the service started (else: the token's)")
      .runs([&context, options, cores, memory, gpus]() -> Outcome<int> {
        const Outcome<void> chosen = read_gpus(*gpus, *options);
        if (!chosen) return give_up(chosen);
        options->cores = cores->value_or(0);
        options->memory = memory->value_or(0);
        return run_agent(context, *options);
      });
}

void add_contain(Command& node, Context& context) {
  auto options = std::make_shared<NodeContainOptions>();
  node.verb("contain", "Becomes a command in a container; started by the keeper",
            "slipway node contain --rootfs /images/torch.tar -- python3 train.py")
      .hidden()
      .text("--rootfs PATH", options->rootfs, "a root file system: a folder, or a tarball of one")
      .text("--image IMAGE", options->image, "an image: a name, oci-archive:PATH, docker-archive:PATH")
      .texts("--mount PATH", options->mounts, "one more folder of the machine, PATH:ro to protect it")
      .rest("COMMAND", options->command, "the command and its arguments")
      .runs([&context, options]() -> Outcome<int> {
        if (options->rootfs.empty() == options->image.empty())
          return misuse("slipway node contain needs either --rootfs or --image");
        return context.programs().node_contain(*options);
      });
}

void add_run_as(Command& node, Context& context) {
  auto options = std::make_shared<NodeRunAsOptions>();
  auto uid = std::make_shared<std::string>(), gid = std::make_shared<std::string>();
  node.verb("run-as", "Becomes a command of another user; started by the keeper",
            "slipway node run-as --uid 1001 --gid 1001 --attempt DIR --hide DIR -- python3 train.py")
      .hidden()
      .text("--uid NUMBER", *uid, "the user")
      .text("--gid NUMBER", *gid, "its group")
      .text("--workspace DIR", options->workspace,
            "the folder of the workspace, which is to let the user through")
      .text("--attempt DIR", options->attempt, "the folder of the attempt")
      .text("--hide DIR", options->data, "the data folder: hidden where ids cannot be changed")
      .texts("--own DIR", options->own, "a folder that becomes the user's")
      .texts("--given DIR", options->given, "likewise, with what is in it")
      .rest("COMMAND", options->command, "the command and its arguments")
      .runs([&context, options, uid, gid]() -> Outcome<int> {
        const auto number = [](const std::string& text, std::uint32_t& id) {
          const char* end = text.data() + text.size();
          const auto [stop, error] = std::from_chars(text.data(), end, id);
          return error == std::errc{} && stop == end && id > 0;
        };
        if (!number(*uid, options->uid) || !number(*gid, options->gid) || options->attempt.empty() ||
            options->data.empty() || options->command.empty())
          return misuse("slipway node run-as needs --uid, --gid, --attempt, --hide and a command");
        return context.programs().node_run_as(*options);
      });
}

void add_keep(Command& node, Context& context) {
  auto folder = std::make_shared<std::string>();
  node.verb("keep", "The keeper of an agent's processes; started by the agent",
            "slipway node keep --folder DIR")
      .hidden()
      .text("--folder DIR", *folder, "the agent's folder")
      .runs([&context, folder]() -> Outcome<int> {
        if (folder->empty()) return misuse("slipway node keep needs --folder");
        return context.programs().node_keep(*folder);
      });
}

void add_sync_datastore(Command& node, Context& context) {
  auto direction = std::make_shared<std::string>();
  auto folder = std::make_shared<std::string>();
  node.verb("sync-datastore", "Copy what differs between a folder and a blob container; started by the agent",
            "slipway node sync-datastore pull --folder DIR")
      .hidden()
      .argument("DIRECTION", *direction, "pull: from the container; push: to it")
      .text("--folder DIR", *folder, "the folder")
      .runs([&context, direction, folder]() -> Outcome<int> {
        if (*direction != "pull" && *direction != "push")
          return misuse("slipway node sync-datastore takes pull or push");
        if (folder->empty()) return misuse("slipway node sync-datastore needs --folder");
        return context.programs().node_sync_datastore(*direction, *folder);
      });
}

// Starts ranks of its own; the control plane runs it on the first node of a gang.
void add_launcher(Command& node, const std::string& verb, const std::string& about,
                  const std::function<int(const std::vector<std::string>&)>& launch) {
  auto command = std::make_shared<std::vector<std::string>>();
  node.verb(verb, about, fmt::format("slipway node {} -- python3 train.py", verb))
      .hidden()
      .rest("COMMAND...", *command, "what every rank runs")
      .runs([&launch, command, verb]() -> Outcome<int> {
        if (command->empty()) return misuse(fmt::format("slipway node {} needs a command", verb));
        return launch(*command);
      });
}

void add_starts(Command& node, Context& context) {
  auto words = std::make_shared<std::vector<std::string>>();
  node.verb("start-remote", "Run a command on another node of the same task, like ssh",
            "slipway node start-remote lab-2 nvidia-smi")
      .verbatim("HOST COMMAND...", *words, "a node's name or address, and a line for its shell")
      .runs([&context, words]() -> Outcome<int> { return context.programs().node_start_remote(*words); });
  node.verb("serve-starts", "Run commands for the other nodes of a task; started by the agent",
            "slipway node serve-starts")
      .hidden()
      .runs([&context]() -> Outcome<int> { return context.programs().node_serve_starts(); });
  add_launcher(node, "launch-mpi", "Start the ranks of a task by mpirun; started by the agent",
               context.programs().node_launch_mpi);
  add_launcher(node, "launch-horovod", "Start the ranks of a Horovod task; started by the agent",
               context.programs().node_launch_horovod);
  add_launcher(node, "launch-ssh", "Run a command that can reach the other nodes; started by the agent",
               context.programs().node_launch_ssh);
  add_launcher(node, "view", "Run a command that sees its mounts; started by the keeper",
               context.programs().node_view);
}

}  // namespace

void add_node(CommandTree& tree, Context& context) {
  Command node = tree.add("node", "Nodes: look at, drain, evict, reset, join", "slipway node list");
  auto pool = std::make_shared<std::string>();
  node.verb("list", "List the nodes", "slipway node list --pool lab")
      .lists()
      .text("--pool POOL", *pool, "only those of this pool")
      .runs([&context, pool] { return list(context, *pool); });
  auto name = std::make_shared<std::string>();
  node.verb("show", "Show one node", "slipway node show lab-1")
      .argument("NODE", *name, "the node")
      .runs([&context, name] {
        return show(context, context.service().get(resource({"nodes", *name})));
      });
  add_change(node, context, "drain", "Schedule no new tasks on a node; running tasks continue");
  add_change(node, context, "resume", "Let a drained node take work again");
  add_evict(node, context);
  add_change(node, context, "reset", "Run a node's start task again");
  add_remove(node, context);
  add_start_logs(node, context);
  add_join_command(node, context);
  add_run_agent(node, context);
  add_keep(node, context);
  add_contain(node, context);
  add_run_as(node, context);
  add_sync_datastore(node, context);
  add_starts(node, context);
}

}  // namespace slipway::cli
