#include "train/run/cluster.h"

#include <fmt/format.h>

#include <charconv>

#include "train/data/order.h"
#include "train/run/tf_config.h"

namespace slipway::train {
namespace {

constexpr std::size_t gang_key_min = 16;

std::string value_of(const Environment& environment, const char* name) {
  const auto found = environment.find(name);
  return found == environment.end() ? std::string() : found->second;
}

Result<std::uint32_t> number_in(const Environment& environment, const char* name) {
  const std::string text = value_of(environment, name);
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || value > 65'536)
    return fail(ErrorCode::invalid, fmt::format("{} is `{}`, not a small whole number", name, text));
  return value;
}

Result<std::vector<Address>> addresses(const std::vector<std::string>& hosts, const std::string& what) {
  std::vector<Address> list;
  for (const std::string& host : hosts) {
    auto address = parse_address(host);
    if (!address) return fail(ErrorCode::invalid, what + ": " + address.error().what, address.error().hint);
    list.push_back(std::move(*address));
  }
  return list;
}

// Servers and workers by host lists, as TF_CONFIG and the between-graph flags give them.
Result<Cluster> by_hosts(const std::vector<std::string>& servers, const std::vector<std::string>& workers,
                         bool is_server, std::uint32_t index, Distribute requested,
                         const std::string& source) {
  auto server_list = addresses(servers, source);
  if (!server_list) return fail(server_list.error());
  auto worker_list = addresses(workers, source);
  if (!worker_list) return fail(worker_list.error());
  if (worker_list->empty())
    return fail(ErrorCode::invalid, source + " names no workers", "a cluster needs at least one worker");
  const std::size_t count = is_server ? server_list->size() : worker_list->size();
  if (index >= count)
    return fail(ErrorCode::invalid,
                fmt::format("{} says that this is {} {} and lists {}", source,
                            is_server ? "parameter server" : "worker", index, count),
                "indices begin at 0");
  Cluster cluster{
      .index = index, .workers = static_cast<std::uint32_t>(worker_list->size()), .source = source};
  cluster.is_server = is_server;
  cluster.master = worker_list->front();
  if (!server_list->empty() && requested != Distribute::all_reduce) {
    cluster.kind = Cluster::Kind::servers;
    cluster.servers = std::move(*server_list);
  } else if (requested == Distribute::servers) {
    return fail(ErrorCode::invalid, source + " names no parameter servers",
                "name some, or use --distribute allreduce");
  } else if (is_server) {
    return fail(ErrorCode::invalid, "this is a parameter server and --distribute allreduce has none",
                "leave the ps role out of the cluster");
  } else if (cluster.workers > 1) {
    cluster.kind = Cluster::Kind::all_reduce;
  }
  return cluster;
}

Result<Cluster> by_flags(const Options& options) {
  if (options.job_name != "ps" && options.job_name != "worker")
    return fail(ErrorCode::invalid,
                fmt::format("--job-name is {}", options.job_name.empty() ? "missing" : options.job_name),
                "--job-name ps or --job-name worker, and --task-index, say which process this is");
  if (!options.task_index)
    return fail(ErrorCode::invalid, "--task-index is missing", "--task-index 0 is the first");
  return by_hosts(options.ps_hosts, options.worker_hosts, options.job_name == "ps", *options.task_index,
                  options.distribute, "--ps-hosts and --worker-hosts");
}

Result<Cluster> by_tf_config(const Options& options, const std::string& text) {
  auto config = parse_tf_config(text);
  if (!config) return fail(config.error());
  std::vector<std::string> workers = config->cluster["chief"];
  if (workers.empty()) workers = config->cluster["master"];  // the older word
  const std::size_t chiefs = workers.size();
  for (const std::string& host : config->cluster["worker"]) workers.push_back(host);
  const bool is_chief = config->type == "chief" || config->type == "master";
  if (!is_chief && config->type != "worker" && config->type != "ps")
    return fail(ErrorCode::invalid, fmt::format("TF_CONFIG gives this process the role {}", config->type),
                "roles are chief, worker and ps; to evaluate, run slipway-train evaluate");
  if (config->index < 0) return fail(ErrorCode::invalid, "TF_CONFIG has a negative index");
  if (workers.empty() && config->cluster["ps"].empty())
    return Cluster{.source = "TF_CONFIG"};  // a lone process
  auto index = static_cast<std::uint32_t>(config->index);
  if (config->type == "worker") index += static_cast<std::uint32_t>(chiefs);
  return by_hosts(config->cluster["ps"], workers, config->type == "ps", index, options.distribute,
                  "TF_CONFIG");
}

Result<Cluster> by_rank(const Options& options, const Environment& environment) {
  const auto rank = number_in(environment, "RANK"), world = number_in(environment, "WORLD_SIZE");
  if (!rank) return fail(rank.error());
  if (!world) return fail(world.error());
  if (*rank >= *world)
    return fail(ErrorCode::invalid, fmt::format("RANK is {} and WORLD_SIZE {}", *rank, *world));
  if (options.distribute == Distribute::servers)
    return fail(ErrorCode::invalid, "RANK and WORLD_SIZE name no addresses for parameter servers",
                "use --ps-hosts and --worker-hosts, TF_CONFIG, or --distribute allreduce");
  Cluster cluster{.index = *rank, .workers = *world, .source = "RANK and WORLD_SIZE"};
  if (*world == 1) return cluster;
  auto master =
      parse_address(value_of(environment, "MASTER_ADDR") + ":" + value_of(environment, "MASTER_PORT"));
  if (!master)
    return fail(ErrorCode::invalid, "MASTER_ADDR and MASTER_PORT do not say where rank 0 is",
                "set both, as torchrun does");
  cluster.kind = Cluster::Kind::all_reduce;
  cluster.master = std::move(*master);
  return cluster;
}

// Slipway's own variables: ranks and the nodes' addresses, ranks dealt to the nodes in blocks.
Result<Cluster> by_slipway(const Options& options, const Environment& environment) {
  const auto rank = number_in(environment, "SLIPWAY_RANK"),
             world = number_in(environment, "SLIPWAY_WORLD_SIZE");
  if (!rank) return fail(rank.error());
  if (!world) return fail(world.error());
  if (*rank >= *world)
    return fail(ErrorCode::invalid,
                fmt::format("SLIPWAY_RANK is {} and SLIPWAY_WORLD_SIZE {}", *rank, *world));
  Cluster cluster{.index = *rank, .workers = *world, .source = "SLIPWAY_RANK"};
  if (*world == 1) return cluster;
  std::vector<std::string> nodes;
  const std::string list = value_of(environment, "SLIPWAY_NODES");
  for (std::size_t at = 0; at < list.size();) {
    const std::size_t comma = std::min(list.find(',', at), list.size());
    if (comma > at) nodes.push_back(list.substr(at, comma - at));
    at = comma + 1;
  }
  if (nodes.empty()) nodes.emplace_back("127.0.0.1");
  // The launcher's port where there is one; else one that differs between jobs and attempts on the same
  // nodes.
  std::uint64_t hash = 0;
  for (const char* name : {"SLIPWAY_JOB_ID", "SLIPWAY_TASK_NAME", "SLIPWAY_TASK_INDEX", "SLIPWAY_ATTEMPT"})
    for (const char c : value_of(environment, name) + "/") hash = mix(hash, static_cast<unsigned char>(c));
  std::uint32_t first_port =
      options.port != 0 ? options.port : 20'000 + static_cast<std::uint32_t>(hash % 10'000);
  if (const auto given = number_in(environment, "SLIPWAY_MASTER_PORT"); given && options.port == 0)
    first_port = *given;
  const std::size_t per_node = (*world + nodes.size() - 1) / nodes.size();
  const auto address = [&](std::uint32_t of) {
    return Address{nodes[std::min<std::size_t>(of / per_node, nodes.size() - 1)],
                   static_cast<std::uint16_t>((first_port + of) % 65'536)};
  };
  cluster.master = address(0);
  cluster.kind = Cluster::Kind::all_reduce;
  if (options.distribute != Distribute::servers) return cluster;
  if (options.servers >= *world)
    return fail(ErrorCode::invalid,
                fmt::format("--ps {} leaves no worker among {} processes", options.servers, *world));
  cluster.kind = Cluster::Kind::servers;
  for (std::uint32_t i = 0; i < options.servers; ++i) cluster.servers.push_back(address(i));
  cluster.is_server = *rank < options.servers;
  cluster.index = cluster.is_server ? *rank : *rank - options.servers;
  cluster.workers = *world - options.servers;
  return cluster;
}

Result<Cluster> find_cluster(const Options& options, const Environment& environment) {
  if (options.distribute == Distribute::none) return Cluster{.source = "--distribute none"};
  if (!options.ps_hosts.empty() || !options.worker_hosts.empty()) return by_flags(options);
  if (const std::string text = value_of(environment, "TF_CONFIG"); !text.empty())
    return by_tf_config(options, text);
  if (environment.contains("RANK") && environment.contains("WORLD_SIZE"))
    return by_rank(options, environment);
  if (environment.contains("SLIPWAY_RANK") && environment.contains("SLIPWAY_WORLD_SIZE"))
    return by_slipway(options, environment);
  if (options.distribute != Distribute::automatic)
    return fail(
        ErrorCode::invalid, "no setting names the other processes",
        "--ps-hosts and --worker-hosts, TF_CONFIG, or RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT do");
  return Cluster{.source = "nothing"};
}

Result<GangKey> gang_key(const Environment& environment) {
  GangKey key{value_of(environment, "SLIPWAY_GANG_KEY")};
  if (key.is_set() && key.secret.size() < gang_key_min)
    return fail(
        ErrorCode::invalid,
        fmt::format("SLIPWAY_GANG_KEY has {} characters, fewer than {}", key.secret.size(), gang_key_min),
        "give every process of the run the same random text, such as that of: openssl rand -hex 32");
  if (value_of(environment, "SLIPWAY_TRUSTED_NETWORK") == "1") key.encryption = GangKey::Encryption::never;
  return key;
}

}  // namespace

Result<Cluster> discover_cluster(const Options& options, const Environment& environment) {
  auto key = gang_key(environment);
  if (!key) return fail(key.error());
  auto cluster = find_cluster(options, environment);
  if (cluster) cluster->key = std::move(*key);
  return cluster;
}

}  // namespace slipway::train
