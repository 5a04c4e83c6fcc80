#include "agent/preparer.h"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "agent/task_environment.h"
#include "base/log.h"
#include "base/quantity.h"

namespace slipway::agent {
namespace {

constexpr Duration trim_every = 10min;

Prepared failed(const WorkKey& key, std::string problem) {
  return {.key = key, .problem = std::move(problem)};
}

}  // namespace

Preparer::Preparer(net::Loop& loop, Worker& worker, const NodeContext& context, std::string node, Done done)
    : loop_(loop),
      worker_(worker),
      context_(context),
      node_(std::move(node)),
      done_(std::move(done)),
      random_(random_seed()) {}

void Preparer::set_storage(FetchBlob fetch) {
  is_cache_ = static_cast<bool>(fetch);
  blobs_ = std::make_unique<Blobs>(context_.data + "/blobs", std::move(fetch));
}

void Preparer::prepare(const PrepareOrder& order) {
  if (order.source.empty() && order.files.empty() && order.view.root.empty()) return find_ports(order);
  if (!order.source.empty()) use_source(order.key, order.source);
  const bool has_namespaces = !order.view.root.empty() && context_.can_view(order.view.root);
  const bool posted = worker_.post([this, order, context = context_, has_namespaces](std::stop_token stop) {
    lay_out_on_worker(order, context, has_namespaces, stop);
  });
  if (!posted) done_(failed(order.key, "too many attempts wait for their code"));
}

void Preparer::lay_out_on_worker(const PrepareOrder& order, const NodeContext& context, bool has_namespaces,
                                 const std::stop_token& stop) {
  Result<void> result = lay_out_all(order, context.data, stop);
  const bool has_files = result.has_value();
  const TaskEnvironment environment(order.view, context, has_namespaces, order.run_as);
  if (result) result = environment.lay_out();
  if (result)
    environment.note(clock_.now(),
                     fmt::format("{}: node {} is laid out{}", to_string(order.key), node_,
                                 has_namespaces || order.view.root.empty()
                                     ? ""
                                     : "; namespaces are not allowed here, so its mounts are links in " +
                                           environment.real(order.view.root)));
  auto report = [this, order, has_files, result = std::move(result)] {
    if (result) return find_ports(order);
    Prepared problem = failed(
        order.key, (has_files ? "its mounts could not be made: " : "its files could not be laid out: ") +
                       result.error().what);
    // Of a source that is not there, or not one, nothing will come of trying again; nor of what the user may
    // not mount.
    problem.is_permanent = has_files ? order.run_as && result.error().code == ErrorCode::denied
                                     : result.error().code == ErrorCode::invalid;
    done_(std::move(problem));
  };
  loop_.post(std::move(report));
}

Result<void> Preparer::lay_out_all(const PrepareOrder& order, const std::string& data,
                                   const std::stop_token& stop) {
  if (auto written = write_files(data + "/" + order.folder, order.files); !written) return written;
  if (order.source.empty()) return {};
  const Result<Snapshot> manifest = blobs_->manifest(order.source);
  if (!manifest) return fail(manifest.error());
  for (const std::string& folder : order.folders) {
    if (stop.stop_requested()) return fail(ErrorCode::unavailable, "the agent is being stopped");
    if (auto done = lay_out(*manifest, *blobs_, data + "/" + folder); !done) return done;
  }
  return {};
}

// Contents fetched for a source stay while one of its attempts is known here. The worker trims between two
// layouts, so that nothing goes that is just being copied.
void Preparer::use_source(const WorkKey& key, const std::string& source) {
  sources_[key] = source;
  const TimePoint now = clock_.now();
  if (!is_cache_ || now < trim_at_) return;
  std::set<std::string> used;
  for (const auto& [attempt, manifest] : sources_) used.insert(manifest);
  const bool posted = worker_.post([this, used = std::move(used)](const std::stop_token&) {
    const Trimmed trimmed = blobs_->trim(used, default_cache_limits(blobs_->folder()), clock_.now());
    if (trimmed.removed > 0)
      log::info("cache.trimmed", {{"node", node_},
                                  {"removed", trimmed.removed},
                                  {"freed", format_bytes(trimmed.freed)},
                                  {"left", format_bytes(trimmed.left)}});
  });
  if (posted) trim_at_ = now + trim_every;
}

// After the files, so that nobody waits long for ports that are kept from him.
void Preparer::find_ports(const PrepareOrder& order) {
  Prepared found{.key = order.key, .secret = random_hex(16)};
  if (order.ports > 0) {
    Result<PortLease> lease = order.ports_from > 0 ? PortLease::take_from(order.ports_from, order.ports)
                                                   : PortLease::take(order.ports, random_);
    if (!lease) return done_(failed(order.key, lease.error().what));
    found.ports = lease->ports();
    leases_.insert_or_assign(order.key, std::move(*lease));
  }
  done_(std::move(found));
}

void Preparer::open_ports(const WorkKey& key) {
  if (const auto lease = leases_.find(key); lease != leases_.end()) lease->second.open();
}

void Preparer::release(const WorkKey& key) {
  leases_.erase(key);
  sources_.erase(key);
}

}  // namespace slipway::agent
