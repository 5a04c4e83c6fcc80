#include "gang_exec/gang.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace slipway::gang_exec {
namespace {

constexpr std::size_t nodes_max = 4096;

template <class Number>
std::optional<Number> parse_count(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || number == 0) return std::nullopt;
  return number;
}

Result<GangNode> parse_entry(std::string_view entry) {
  const auto wrong = [&] {
    return fail(ErrorCode::invalid, fmt::format("SLIPWAY_START_HOSTS: '{}' is not name=address:port", entry),
                "an entry looks like lab-1=10.0.0.5:31001 or lab-1=[::1]:31001");
  };
  const std::size_t equals = entry.find('=');
  const std::size_t colon = entry.rfind(':');
  if (equals == std::string_view::npos || colon == std::string_view::npos || colon < equals) return wrong();
  GangNode node;
  node.name = entry.substr(0, equals);
  std::string_view address = entry.substr(equals + 1, colon - equals - 1);
  if (address.size() > 2 && address.front() == '[' && address.back() == ']')
    address = address.substr(1, address.size() - 2);
  else if (address.find_first_of("[]:") != std::string_view::npos)
    return wrong();
  node.address = address;
  const auto port = parse_count<std::uint16_t>(entry.substr(colon + 1));
  if (node.name.empty() || node.address.empty() || !port) return wrong();
  node.port = *port;
  return node;
}

std::string names(const std::vector<GangNode>& nodes) {
  std::string list;
  for (const GangNode& node : nodes) list += (list.empty() ? "" : ", ") + node.name;
  return list;
}

}  // namespace

bool is_loopback(std::string_view address) {
  return address.starts_with("127.") || address == "::1" || address == "localhost";
}

bool Gang::is_loopback() const {
  return std::all_of(nodes.begin(), nodes.end(),
                     [](const GangNode& node) { return gang_exec::is_loopback(node.address); });
}

Result<std::vector<GangNode>> parse_start_hosts(std::string_view text) {
  std::vector<GangNode> nodes;
  while (!text.empty() || nodes.empty()) {
    const std::size_t comma = text.find(',');
    Result<GangNode> node = parse_entry(text.substr(0, comma));
    if (!node) return fail(node.error());
    if (std::any_of(nodes.begin(), nodes.end(),
                    [&](const GangNode& each) { return each.name == node->name; }))
      return fail(ErrorCode::invalid, fmt::format("SLIPWAY_START_HOSTS names {} twice", node->name));
    if (nodes.size() == nodes_max)
      return fail(ErrorCode::too_large, fmt::format("SLIPWAY_START_HOSTS has over {} entries", nodes_max));
    nodes.push_back(std::move(*node));
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
    if (text.empty()) return fail(ErrorCode::invalid, "SLIPWAY_START_HOSTS ends with a comma");
  }
  return nodes;
}

Result<Gang> parse_gang(const Environment& variables) {
  const auto value = [&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::string() : found->second;
  };
  if (value("SLIPWAY_START_HOSTS").empty())
    return fail(ErrorCode::not_found,
                "this works only inside a task with toolkit mpi or horovod: SLIPWAY_START_HOSTS is not set");
  Gang gang;
  auto nodes = parse_start_hosts(value("SLIPWAY_START_HOSTS"));
  if (!nodes) return fail(nodes.error());
  gang.nodes = std::move(*nodes);
  gang.secret = value("SLIPWAY_START_SECRET");
  if (gang.secret.size() < 16)
    return fail(ErrorCode::invalid, "SLIPWAY_START_SECRET is missing or has less than 16 characters");
  const std::string own = value("SLIPWAY_NODE");
  const auto self = std::find_if(gang.nodes.begin(), gang.nodes.end(),
                                 [&](const GangNode& node) { return node.name == own; });
  if (self == gang.nodes.end())
    return fail(ErrorCode::invalid,
                fmt::format("SLIPWAY_NODE is '{}', which is not in SLIPWAY_START_HOSTS ({})", own,
                            names(gang.nodes)));
  gang.own = static_cast<std::size_t>(self - gang.nodes.begin());
  gang.trusts_network = value("SLIPWAY_TRUSTED_NETWORK") == "1";
  gang.shares_machine = value("SLIPWAY_SHARED_MACHINE") == "yes";
  if (const std::string each = value("SLIPWAY_PROCESSES_PER_NODE"); !each.empty()) {
    const auto count = parse_count<std::uint32_t>(each);
    if (!count || *count > 65536)
      return fail(ErrorCode::invalid, fmt::format("SLIPWAY_PROCESSES_PER_NODE: '{}' is not a count", each));
    gang.processes_per_node = *count;
  }
  gang.hostfile = value("SLIPWAY_HOSTFILE");
  if (const std::string range = value("SLIPWAY_ELASTIC_NODES"); !range.empty()) {
    const std::size_t colon = std::min(range.find(':'), range.size() - 1);
    const auto least = parse_count<std::uint32_t>(std::string_view(range).substr(0, colon));
    const auto most = parse_count<std::uint32_t>(std::string_view(range).substr(colon + 1));
    if (!least || !most || *least > *most)
      return fail(ErrorCode::invalid, fmt::format("SLIPWAY_ELASTIC_NODES: '{}' is not MIN:MAX", range));
    gang.elastic = ElasticNodes{*least, *most};
  }
  return gang;
}

Result<std::size_t> find_node(const Gang& gang, std::string_view host) {
  if (const std::size_t at = host.rfind('@'); at != std::string_view::npos) host.remove_prefix(at + 1);
  // A name first: an address may serve several nodes, a name only one.
  for (std::size_t i = 0; i < gang.nodes.size(); ++i)
    if (gang.nodes[i].name == host) return i;
  for (std::size_t i = 0; i < gang.nodes.size(); ++i)
    if (gang.nodes[i].address == host) return i;
  return fail(ErrorCode::not_found, fmt::format("{} is not a node of this gang", host),
              fmt::format("one of {}", names(gang.nodes)));
}

}  // namespace slipway::gang_exec
