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
  const auto memory = [](const Value& node) { return format_bytes(node.count_at("memory")); };
  const auto running = [](const Value& node) { return joined(node.items_at("running"), " "); };
  return print_list(context,
                    {.target = with_query(resource({"nodes"}), {{"pool", pool}}),
                     .columns = {column("NODE", "name"),
                                 column("POOL", "pool"),
                                 state_column(),
                                 {{"CORES", true}, used},
                                 {{"MEMORY", true}, memory},
                                 number_column("GPUS", "gpus"),
                                 column("ADDRESS", "address"),
                                 age_column(context, "SINCE", "changed_at"),
                                 {{"RUNNING"}, running}},
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
  options.service = endpoint.url;
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
  node.verb("remove", "Remove a node from its pool", "slipway node remove lab-1")
      .argument("NODE", *name, "the node")
      .word("--deallocation RULE", *rule, {"requeue", "terminate", "task_completion", "retained_data"},
            "what happens to its tasks (default requeue)")
      .runs([&context, name, rule] {
        return show(context,
                    context.service().send("POST", resource({"nodes", *name, "remove"}),
                                           wire::format_object({{"deallocation", wire::quote(*rule)}})));
      });
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
  add_run_agent(node, context);
  add_keep(node, context);
  add_contain(node, context);
  add_sync_datastore(node, context);
  add_starts(node, context);
}

}  // namespace slipway::cli
