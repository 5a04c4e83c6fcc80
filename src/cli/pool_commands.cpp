#include <fmt/format.h>

#include "cli/commands.h"
#include "wire/records.h"

namespace slipway::cli {
namespace {

using Fields = std::vector<std::pair<std::string, std::string>>;

struct CreateOptions {
  std::string name;
  std::optional<std::uint32_t> nodes;
  std::optional<double> cores_per_node;
  std::optional<Bytes> memory_per_node;
  std::string provisioner;
  bool overcommit = false;
  std::optional<Duration> lost_after;
};

struct ResizeOptions {
  std::string name;
  std::optional<std::uint32_t> nodes;
  bool overcommit = false;
};

std::string describe(const Context& context, const Value& pool) {
  const Value nodes = pool.at("nodes");
  const std::string provisioner = pool.text("provisioner");
  return format_fields({
      {"name", pool.text("name")},
      {"provisioner", provisioner == "none" ? "none: nodes join by themselves" : provisioner},
      {"nodes", fmt::format("{} wanted; {} idle, {} busy, {} joining, {} draining, {} lost",
                            nodes.count("target"), nodes.count("idle"), nodes.count("busy"),
                            nodes.count("joining"), nodes.count("draining"), nodes.count("lost"))},
      {"each",
       fmt::format("{} cores, {}", pool.text("cores_per_node"), format_bytes(pool.count("memory_per_node")))},
      {"overcommit", pool.is_true("overcommit") ? "yes: the nodes may have more than the machine" : "no"},
      {"lost after", fmt::format("{} s of silence", pool.text("lost_after"))},
      {"created", ago(context, pool.time("created_at"))},
      {"notes", joined(pool.items("notes"), "\n")},
  });
}

Outcome<int> show(Context& context, const Outcome<Value>& pool) {
  if (!pool) return give_up(pool);
  return print(context, *pool, pool->text("name"), [&] { return describe(context, *pool); });
}

Outcome<int> create(Context& context, const CreateOptions& options) {
  Fields body{{"name", wire::quote(options.name)}, {"nodes", std::to_string(options.nodes.value_or(0))}};
  if (options.cores_per_node) body.emplace_back("cores_per_node", fmt::format("{}", *options.cores_per_node));
  if (options.memory_per_node) body.emplace_back("memory_per_node", std::to_string(*options.memory_per_node));
  if (!options.provisioner.empty()) body.emplace_back("provisioner", wire::quote(options.provisioner));
  if (options.overcommit) body.emplace_back("overcommit", "true");
  if (options.lost_after) body.emplace_back("lost_after", fmt::format("{}", seconds(*options.lost_after)));
  return show(context, context.service().send("POST", resource({"pools"}), wire::format_object(body)));
}

Outcome<int> resize(Context& context, const ResizeOptions& options) {
  Fields body{{"nodes", std::to_string(*options.nodes)}};
  if (options.overcommit) body.emplace_back("overcommit", "true");
  return show(context,
              context.service().send("PATCH", resource({"pools", options.name}), wire::format_object(body)));
}

Outcome<int> remove(Context& context, const std::string& name, bool yes) {
  const Outcome<void> agreed = confirm(fmt::format("Delete pool {} and stop its nodes?", name), yes);
  if (!agreed) return give_up(agreed);
  const Outcome<Value> deleted = context.service().send("DELETE", resource({"pools", name}), {});
  if (!deleted) return give_up(deleted);
  context.say(fmt::format("pool {} is deleted", name));
  return ExitCode::done;
}

Outcome<int> list(Context& context) {
  const auto nodes = [](const char* state) {
    return [state](const Value& pool) { return pool.at("nodes").text(state); };
  };
  return print_list(
      context, {.target = resource({"pools"}),
                .columns = {column("POOL", "name"),
                            column("PROVISIONER", "provisioner"),
                            {{"NODES", true}, nodes("target")},
                            {{"IDLE", true}, nodes("idle")},
                            {{"BUSY", true}, nodes("busy")},
                            {{"LOST", true}, nodes("lost")},
                            number_column("CORES", "cores_per_node"),
                            {{"MEMORY", true},
                             [](const Value& pool) { return format_bytes(pool.count("memory_per_node")); }},
                            age_column(context, "AGE", "created_at")},
                .empty = "there are no pools; slipway pool create lab --nodes 2 makes one"});
}

void add_create(Command& pool, Context& context) {
  auto options = std::make_shared<CreateOptions>();
  pool.verb("create", "Make a pool of nodes", "slipway pool create lab --nodes 2 --cores-per-node 1")
      .argument("POOL", options->name, "its name")
      .number("--nodes N", options->nodes, "how many nodes to keep up (default 0)")
      .decimal("--cores-per-node N", options->cores_per_node, "default: an equal share of this machine")
      .size("--memory-per-node SIZE", options->memory_per_node, "like 2GiB; default: an equal share")
      .word("--provisioner NAME", options->provisioner, {"local", "none"},
            "local: nodes on the service's machine; none: they join by slipway node run")
      .flag("--overcommit", options->overcommit, "allow more than the machine has")
      .duration("--lost-after TIME", options->lost_after, "a node silent for so long is lost (default 2s)")
      .runs([&context, options] { return create(context, *options); });
}

void add_resize(Command& pool, Context& context) {
  auto options = std::make_shared<ResizeOptions>();
  pool.verb("resize", "Change how many nodes a pool keeps up", "slipway pool resize lab --nodes 4")
      .argument("POOL", options->name, "the pool")
      .number("--nodes N", options->nodes, "how many nodes", Need::required)
      .flag("--overcommit", options->overcommit, "allow more than the machine has")
      .runs([&context, options] { return resize(context, *options); });
}

void add_delete(Command& pool, Context& context) {
  auto name = std::make_shared<std::string>();
  auto yes = std::make_shared<bool>(false);
  pool.verb("delete", "Delete a pool and stop its nodes", "slipway pool delete lab --yes")
      .argument("POOL", *name, "the pool")
      .flag("-y,--yes", *yes, "do not ask")
      .runs([&context, name, yes] { return remove(context, *name, *yes); });
}

}  // namespace

void add_pool(CommandTree& tree, Context& context) {
  Command pool = tree.add("pool", "Pools of nodes: make, look at, resize, delete", "slipway pool list");
  add_create(pool, context);
  pool.verb("list", "List the pools", "slipway pool list").runs([&context] { return list(context); });
  auto name = std::make_shared<std::string>();
  pool.verb("show", "Show one pool", "slipway pool show lab")
      .argument("POOL", *name, "the pool")
      .runs([&context, name] {
        return show(context, context.service().get(resource({"pools", *name})));
      });
  add_resize(pool, context);
  add_delete(pool, context);
}

}  // namespace slipway::cli
