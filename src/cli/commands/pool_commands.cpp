#include <fmt/format.h>

#include "base/file.h"
#include "cli/commands/commands.h"
#include "cli/commands/submit.h"
#include "wire/records.h"

namespace slipway::cli {
namespace {

using Fields = std::vector<std::pair<std::string, std::string>>;

struct PoolOptions {
  std::string name;
  std::optional<std::uint32_t> nodes, dedicated, low_priority, min, max, slots_per_node, start_retries;
  std::optional<double> cores_per_node;
  std::optional<Bytes> memory_per_node;
  std::optional<std::uint32_t> gpus_per_node;
  std::string cpu_limit, on_lease_loss, provisioner, fill, deallocation, start_task, evict_every;
  std::optional<std::uint32_t> evict_seed;
  std::vector<std::string> tags;
  bool overcommit = false, if_missing = false;
  bool start_no_wait = false;
  std::optional<Duration> lease, lost_after, idle_timeout, notice, start_timeout, resize_timeout;
};

std::string nodes_text(const Value& nodes) {
  std::string text = fmt::format("{} wanted", nodes.count_at("target"));
  if (nodes.count_at("target_low_priority") > 0)
    text += fmt::format(" ({} dedicated, {} low-priority)", nodes.count_at("target_dedicated"),
                        nodes.count_at("target_low_priority"));
  text += fmt::format("; {} idle, {} busy, {} joining, {} draining, {} lost", nodes.count_at("idle"),
                      nodes.count_at("busy"), nodes.count_at("joining"), nodes.count_at("draining"),
                      nodes.count_at("lost"));
  for (const char* state : {"starting", "evicted", "start_failed"})
    if (nodes.count_at(state) > 0) text += fmt::format(", {} {}", nodes.count_at(state), state);
  return text;
}

std::string state_text(const Context& context, const Value& pool) {
  const Value& resize = pool.at("resize");
  std::string text = pool.text_at("state");
  if (text == "resizing") text += fmt::format(" since {}", ago(context, resize.time_at("since")));
  for (const Value& error : resize.items_at("errors"))
    text += fmt::format("\n{}: {}", error.text_at("code"), error.text_at("message"));
  return text;
}

std::string scale_text(const Context& context, const Value& pool) {
  const Value& scale = pool.at("autoscale");
  const std::string by = scale.text_at("by");
  if (by == "hand") return "by hand";
  if (by == "demand")
    return fmt::format("by demand, {} to {} nodes; idle ones go after {} s", scale.count_at("min"),
                       scale.count_at("max"), pool.text_at("idle_timeout"));
  const Value& run = pool.at("last_run");
  std::string text = fmt::format("by {} every {} s", by, scale.text_at("interval"));
  if (!run.is_null()) {
    text += fmt::format("\nlast {}: {}", ago(context, run.time_at("time")), run.text_at("results"));
    if (!run.at("error").is_null())
      text += fmt::format("\n{}: {}", run.at("error").text_at("code"), run.at("error").text_at("message"));
  }
  return text;
}

std::string node_size(const Value& pool) {
  std::string text = fmt::format("{} cores, {}", pool.text_at("cores_per_node"),
                                 format_bytes(pool.count_at("memory_per_node")));
  if (const std::uint64_t gpus = pool.count_at("gpus_per_node"); gpus > 0)
    text += fmt::format(", {} GPU{}", gpus, gpus == 1 ? "" : "s");
  return text;
}

std::string describe(const Context& context, const Value& pool) {
  const std::string provisioner = pool.text_at("provisioner");
  const Value& start = pool.at("start_task");
  const Value& evictions = pool.at("evictions");
  return format_fields({
      {"name", pool.text_at("name")},
      {"state", state_text(context, pool)},
      {"provisioner", provisioner == "none" ? "none: nodes join by themselves" : provisioner},
      {"nodes", nodes_text(pool.at("nodes"))},
      {"each", node_size(pool)},
      {"core limit", pool.text_at("cpu_limit")},
      {"slots", pool.count_at("slots_per_node") > 0
                    ? fmt::format("{} tasks a node at a time", pool.count_at("slots_per_node"))
                    : ""},
      {"fill", pool.text_at("fill")},
      {"sized", scale_text(context, pool)},
      {"start task", start.is_null()                    ? ""
                     : start.text_at("command").empty() ? "a script"
                                                        : start.text_at("command")},
      {"evictions", evictions.is_null()
                        ? ""
                        : fmt::format("every {} s, {} s more or less", evictions.text_at("every"),
                                      evictions.text_at("spread"))},
      {"notice", fmt::format("{} s before an evicted node goes", pool.text_at("notice"))},
      {"overcommit", pool.is_true_at("overcommit") ? "yes: the nodes may have more than the machine" : "no"},
      {"lease",
       pool.text_at("on_lease_loss") == "keep"
           ? fmt::format("{} s; tasks are kept for {} s", pool.text_at("lease"), pool.text_at("lost_after"))
           : fmt::format("{} s; then tasks are stopped", pool.text_at("lease"))},
      {"created", ago(context, pool.time_at("created_at"))},
      {"sharing", describe_policy(pool.at("policy"))},
      {"tags", tags_text(pool)},
      {"notes", joined(pool.items_at("notes"), "\n")},
  });
}

Outcome<int> show(Context& context, const Outcome<Value>& pool) {
  if (!pool) return give_up(pool);
  return print(context, *pool, pool->text_at("name"), [&] { return describe(context, *pool); });
}

std::string seconds_text(Duration duration) { return fmt::format("{}", seconds(duration)); }

// A file that is there is sent as it is; anything else is a command line.
Outcome<std::string> start_task_json(const PoolOptions& options) {
  Fields task;
  if (options.start_task.empty()) {
    if (options.start_timeout || options.start_retries || options.start_no_wait)
      return misuse("--start-timeout, --start-retries and --start-no-wait are about a start task",
                    "add --start-task FILE");
    return std::string();
  }
  if (const Result<std::string> script = read_file(options.start_task); script && !script->empty())
    task.emplace_back(script->starts_with("#!") ? "script" : "command", wire::quote(*script));
  else if (options.start_task.find('/') != std::string::npos &&
           options.start_task.find(' ') == std::string::npos)
    return give_up(
        Failure{ExitCode::refused,
                script ? fmt::format("the start task {} is empty", options.start_task) : script.error().what,
                "give a file, or a command in quotes"});
  else
    task.emplace_back("command", wire::quote(options.start_task));
  if (options.start_retries) task.emplace_back("retries", std::to_string(*options.start_retries));
  if (options.start_timeout) task.emplace_back("timeout", seconds_text(*options.start_timeout));
  if (options.start_no_wait) task.emplace_back("wait_for_success", "false");
  return wire::format_object(task);
}

// 20s±10s, 20s+-10s, or just 20s.
Outcome<std::string> evictions_json(const PoolOptions& options) {
  const std::string& text = options.evict_every;
  std::size_t cut = text.find("±"), width = std::string_view("±").size();
  if (cut == std::string::npos) cut = text.find("+-"), width = 2;
  const auto every = parse_duration(text.substr(0, cut));
  const auto spread =
      cut == std::string::npos ? Result<Duration>(Duration(0)) : parse_duration(text.substr(cut + width));
  if (!every || !spread)
    return misuse(fmt::format("--evict-every: '{}' is not a time", text), "write it like 20s±10s");
  return wire::format_object({{"every", seconds_text(*every)},
                              {"spread", seconds_text(*spread)},
                              {"seed", std::to_string(options.evict_seed.value_or(1))}});
}

Outcome<Fields> fields_of(const PoolOptions& options) {
  Fields body;
  const auto add = [&](const char* name, const auto& value) {
    if (value) body.emplace_back(name, fmt::format("{}", *value));
  };
  const auto add_time = [&](const char* name, const std::optional<Duration>& value) {
    if (value) body.emplace_back(name, seconds_text(*value));
  };
  const auto add_word = [&](const char* name, const std::string& value) {
    if (!value.empty()) body.emplace_back(name, wire::quote(value));
  };
  if (options.nodes && options.dedicated)
    return misuse("--nodes and --dedicated are the same thing", "leave one out");
  add("dedicated", options.nodes ? options.nodes : options.dedicated);
  add("low_priority", options.low_priority);
  add("min", options.min);
  add("max", options.max);
  add("slots_per_node", options.slots_per_node);
  add("cores_per_node", options.cores_per_node);
  add("memory_per_node", options.memory_per_node);
  add("gpus_per_node", options.gpus_per_node);
  add_word("cpu_limit", options.cpu_limit);
  add_word("provisioner", options.provisioner);
  add_word("fill", options.fill);
  add_word("deallocation", options.deallocation);
  if (options.overcommit) body.emplace_back("overcommit", "true");
  add_time("lease", options.lease);
  add_word("on_lease_loss", options.on_lease_loss);
  add_time("lost_after", options.lost_after);
  add_time("idle_timeout", options.idle_timeout);
  add_time("notice", options.notice);
  add_time("resize_timeout", options.resize_timeout);
  const Outcome<std::string> start_task = start_task_json(options);
  if (!start_task) return give_up(start_task);
  if (!start_task->empty()) body.emplace_back("start_task", *start_task);
  if (!options.evict_every.empty()) {
    const Outcome<std::string> evictions = evictions_json(options);
    if (!evictions) return give_up(evictions);
    body.emplace_back("evictions", *evictions);
  }
  return body;
}

// The tags there are with those given; NAME= takes one away.
Outcome<std::string> tags_json(Value tags, const std::vector<std::string>& given) {
  if (!tags.is_map()) tags = Value::map();
  for (const std::string& tag : given) {
    const Outcome<std::pair<std::string, std::string>> parsed = parse_assignment("--tag", tag);
    if (!parsed) return give_up(parsed);
    if (parsed->second.empty())
      tags.erase(parsed->first);
    else
      tags[parsed->first] = parsed->second;
  }
  return wire::format_json(tags);
}

Outcome<int> create(Context& context, const PoolOptions& options) {
  Outcome<Fields> body = fields_of(options);
  if (!body) return give_up(body);
  body->insert(body->begin(), {"name", wire::quote(options.name)});
  // Without a number of nodes a pool has none.
  if (!options.nodes && !options.dedicated && !options.max) body->emplace_back("dedicated", "0");
  if (!options.tags.empty()) {
    const Outcome<std::string> tags = tags_json(Value::map(), options.tags);
    if (!tags) return give_up(tags);
    body->emplace_back("tags", *tags);
  }
  Outcome<Value> made = context.service().send("POST", resource({"pools"}), wire::format_object(*body));
  if (!made && made.error().status == 409 && options.if_missing) {
    Outcome<Value> known = context.service().get(resource({"pools", options.name}));
    if (known) {
      context.say(fmt::format("pool {} exists already", options.name));
      made = std::move(known);
    }
  }
  return show(context, std::move(made));
}

Outcome<int> resize(Context& context, const PoolOptions& options, bool stop) {
  if (stop)
    return show(context,
                context.service().send("POST", resource({"pools", options.name, "resize", "stop"}), "{}"));
  const Outcome<Fields> body = fields_of(options);
  if (!body) return give_up(body);
  if (!options.nodes && !options.dedicated && !options.low_priority)
    return misuse("slipway pool resize needs --nodes N or --low-priority N",
                  "slipway pool resize POOL --nodes 4");
  return show(context,
              context.service().send("PATCH", resource({"pools", options.name}), wire::format_object(*body)));
}

Outcome<int> set(Context& context, const PoolOptions& options) {
  Outcome<Fields> body = fields_of(options);
  if (!body) return give_up(body);
  if (!options.tags.empty()) {
    const Outcome<Value> pool = context.service().get(resource({"pools", options.name}));
    if (!pool) return give_up(pool);
    const Outcome<std::string> tags = tags_json(pool->at("tags"), options.tags);
    if (!tags) return give_up(tags);
    body->emplace_back("tags", *tags);
  }
  if (body->empty()) return misuse("slipway pool set needs something to change", "slipway pool set --help");
  return show(context,
              context.service().send("PATCH", resource({"pools", options.name}), wire::format_object(*body)));
}

Outcome<int> history(Context& context, const std::string& name) {
  const auto counts = [](const char* which) {
    return [which](const Value& entry) {
      const Value nodes = entry.at(which);
      return fmt::format("{}+{}", nodes.text_at("dedicated"), nodes.text_at("low_priority"));
    };
  };
  const auto states = [](const Value& entry) {
    std::string text;
    for (const char* state :
         {"joining", "starting", "idle", "busy", "draining", "evicted", "lost", "start_failed"})
      if (const std::uint64_t count = entry.at("nodes").count_at(state); count > 0)
        text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, state);
    return text.empty() ? std::string("none") : text;
  };
  return print_list(context,
                    {.target = resource({"pools", name, "history"}),
                     .columns = {{{"TIME"}, [](const Value& entry) { return time_text(entry, "time"); }},
                                 drop(3, {{"TARGET", true}, counts("target")}),
                                 drop(2, {{"NODES", true}, counts("present")}),
                                 drop(1, {{"STATES"}, states}),
                                 column("REASON", "reason")},
                     .empty = "nothing has happened to this pool yet"});
}

Outcome<int> remove(Context& context, const std::string& name, bool yes, bool force) {
  const Outcome<void> agreed = confirm(fmt::format("Delete pool {} and stop its nodes?", name), yes);
  if (!agreed) return give_up(agreed);
  const Outcome<Value> deleted = context.service().send(
      "DELETE", with_query(resource({"pools", name}), {{"force", force ? "true" : ""}}), {});
  if (!deleted) return give_up(deleted);
  context.say(fmt::format("pool {} is deleted", name));
  return ExitCode::done;
}

Outcome<int> list(Context& context) {
  const auto nodes = [](const char* state) {
    return [state](const Value& pool) { return pool.at("nodes").text_at(state); };
  };
  return print_list(
      context,
      {.target = resource({"pools"}),
       .columns =
           {column("POOL", "name"),
            drop(2, column("PROVISIONER", "provisioner")),
            {{"NODES", true}, nodes("target")},
            {{"IDLE", true}, nodes("idle")},
            {{"BUSY", true}, nodes("busy")},
            drop(4, {{"LOST", true}, nodes("lost")}),
            drop(5, number_column("CORES", "cores_per_node")),
            drop(3, {{"MEMORY", true},
                     [](const Value& pool) { return format_bytes(pool.count_at("memory_per_node")); }}),
            drop(1, wide(number_column("GPUS", "gpus_per_node"))),
            drop(6, {{"DEFAULT"},
                     [](const Value& pool) { return std::string(pool.is_true_at("default") ? "yes" : ""); }}),
            age_column(context, "AGE", "created_at")},
       .empty = "there are no pools; slipway pool create lab --nodes 2 makes one"});
}

// What can be said of a pool when it is made and changed later.
void add_settings(Command& verb, PoolOptions& options) {
  verb.number("--slots-per-node N", options.slots_per_node,
              "tasks on a node at a time (default: as many as fit)")
      .word("--fill WAY", options.fill, {"pack", "spread"},
            "which node takes the next task: the fullest or the emptiest")
      .duration("--idle-timeout TIME", options.idle_timeout,
                "with --max: a node idle for longer goes (default 5m)")
      .text("--start-task FILE", options.start_task,
            "a script each node runs before it takes work, or a command in quotes")
      .duration("--start-timeout TIME", options.start_timeout, "how long it may run (default 10m)")
      .number("--start-retries N", options.start_retries, "how often it is tried again (default 0)")
      .flag("--start-no-wait", options.start_no_wait, "let nodes take work while it runs, and when it failed")
      .duration("--notice TIME", options.notice,
                "between the notice and the end of an eviction (default 30s)")
      .text("--evict-every TIME", options.evict_every,
            "take a low-priority node away now and then, like 20s±10s")
      .texts("--tag NAME=VALUE", options.tags, "a tag; NAME= takes it away (repeatable)")
      .number("--evict-seed N", options.evict_seed, "which nodes and when (default 1)")
      .duration("--lease TIME", options.lease,
                "how long tasks of a joined node run without contact to the service (default 5s)")
      .word("--on-lease-loss WORD", options.on_lease_loss, {"stop", "keep"},
            "then stop them and start them elsewhere, or keep them and wait (default stop)")
      .duration("--lost-after TIME", options.lost_after,
                "with keep: how long the service waits (default 60s)");
}

void add_create(Command& pool, Context& context) {
  auto options = std::make_shared<PoolOptions>();
  Command create_verb =
      pool.verb("create", "Make a pool of nodes", "slipway pool create lab --nodes 2 --cores-per-node 1");
  create_verb.argument("POOL", options->name, "its name")
      .number("--nodes N", options->nodes, "how many nodes to keep up (default 0)")
      .number("--dedicated N", options->dedicated, "the same as --nodes")
      .number("--low-priority N", options->low_priority,
              "how many more nodes that may be evicted at any time")
      .number("--min N", options->min, "with --max: never fewer nodes (default 0)")
      .number("--max N", options->max, "grow to so many nodes when work waits, and shrink when it is done")
      .word("--deallocation RULE", options->deallocation,
            {"requeue", "terminate", "task_completion", "retained_data"},
            "what becomes of tasks when autoscaling takes their node (default requeue)")
      .decimal("--cores-per-node N", options->cores_per_node, "default: an equal share of this machine")
      .size("--memory-per-node SIZE", options->memory_per_node, "like 2GiB; default: an equal share")
      .number("--gpus-per-node N", options->gpus_per_node,
              "default: an equal share of the GPUs that no other pool has")
      .word("--cpu-limit WORD", options->cpu_limit, {"on", "off"},
            "whether tasks are held to the cores they ask for (default on)")
      .word("--provisioner NAME", options->provisioner, {"local", "none"},
            "local: nodes on the service's machine; none: they join by slipway node run")
      .flag("--overcommit", options->overcommit, "allow more than the machine has")
      .flag("--if-missing", options->if_missing, "when there is a pool of that name, leave it as it is");
  add_settings(create_verb, *options);
  create_verb.runs([&context, options] { return create(context, *options); });
}

Outcome<int> show_default(Context& context) {
  std::optional<Value> found;
  const Outcome<void> listed =
      context.service().pages(resource({"pools"}), [&](const std::vector<Value>& pools) {
        for (const Value& one : pools)
          if (one.is_true_at("default")) found = one;
        return !found;
      });
  if (!listed) return give_up(listed);
  if (!found) return refuse("there are no pools", {}, "slipway pool create lab --nodes 2");
  return print(context, *found, found->text_at("name"), found->text_at("name") + "\n");
}

Outcome<int> set_default(Context& context, const std::string& name) {
  if (name.empty()) return show_default(context);
  const Outcome<Value> changed =
      context.service().send("PATCH", resource({"pools", name}), R"({"default":true})");
  if (!changed) return give_up(changed);
  return print(context, *changed, name, fmt::format("jobs that name no pool run in {}\n", name));
}

void add_default(Command& pool, Context& context) {
  auto name = std::make_shared<std::string>();
  pool.verb("default", "Choose or show the pool of jobs that name none", "slipway pool default lab")
      .argument("POOL", *name,
                "the pool (default: show which it is; without a choice the first that was made)",
                Need::optional)
      .runs([&context, name] { return set_default(context, *name); });
}

void add_resize(Command& pool, Context& context) {
  auto options = std::make_shared<PoolOptions>();
  auto stop = std::make_shared<bool>(false);
  pool.verb("resize", "Change how many nodes a pool keeps up", "slipway pool resize lab --nodes 4")
      .argument("POOL", options->name, "the pool")
      .number("--nodes N", options->nodes, "how many nodes")
      .number("--dedicated N", options->dedicated, "the same as --nodes")
      .number("--low-priority N", options->low_priority, "how many nodes that may be evicted at any time")
      .word("--deallocation RULE", options->deallocation,
            {"requeue", "terminate", "task_completion", "retained_data"},
            "what becomes of the tasks of nodes that go (default requeue)")
      .duration("--timeout TIME", options->resize_timeout,
                "give up after this time, with the reason (default 15m)")
      .flag("--stop", *stop, "stop a resize: the pool keeps what it has")
      .flag("--overcommit", options->overcommit, "allow more than the machine has")
      .runs([&context, options, stop] { return resize(context, *options, *stop); });
}

void add_set(Command& pool, Context& context) {
  auto options = std::make_shared<PoolOptions>();
  Command verb = pool.verb("set", "Change the settings of a pool", "slipway pool set lab --fill spread");
  verb.argument("POOL", options->name, "the pool");
  add_settings(verb, *options);
  verb.runs([&context, options] { return set(context, *options); });
}

void add_delete(Command& pool, Context& context) {
  auto name = std::make_shared<std::string>();
  auto yes = std::make_shared<bool>(false);
  auto force = std::make_shared<bool>(false);
  pool.verb("delete", "Delete a pool and stop its nodes", "slipway pool delete lab --yes")
      .argument("POOL", *name, "the pool")
      .flag("-y,--yes", *yes, "do not ask")
      .flag("--force", *force, "stop the jobs that still use it")
      .runs([&context, name, yes, force] { return remove(context, *name, *yes, *force); });
}

}  // namespace

void add_pool(CommandTree& tree, Context& context) {
  Command pool = tree.add("pool", "Pools of nodes: make, look at, resize, delete", "slipway pool list");
  add_create(pool, context);
  pool.verb("list", "List the pools", "slipway pool list").lists().runs([&context] { return list(context); });
  auto name = std::make_shared<std::string>();
  pool.verb("show", "Show one pool", "slipway pool show lab")
      .argument("POOL", *name, "the pool")
      .runs([&context, name] {
        return show(context, context.service().get(resource({"pools", *name})));
      });
  add_default(pool, context);
  add_resize(pool, context);
  add_set(pool, context);
  add_autoscale(pool, context);
  auto past = std::make_shared<std::string>();
  pool.verb("history", "What a pool should have had, what it had, and why", "slipway pool history lab")
      .lists()
      .argument("POOL", *past, "the pool")
      .runs([&context, past] { return history(context, *past); });
  add_policy(pool, context);
  add_pool_usage(pool, context);
  add_delete(pool, context);
}

}  // namespace slipway::cli
