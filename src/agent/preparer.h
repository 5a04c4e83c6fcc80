#pragma once
// Prepares attempts before they start: lays out their code, files and mounts on the worker, then finds ports.
// Contents that were fetched for it are cached, and the cache is trimmed (blob_cache.h).
#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>

#include "agent/order.h"
#include "agent/ports.h"
#include "agent/staging.h"
#include "agent/worker.h"
#include "base/clock.h"
#include "base/random.h"
#include "net/loop.h"

namespace slipway::agent {

class Preparer {
 public:
  using Done = std::function<void(Prepared)>;  // on the loop's thread; with a problem where it failed
  // `context` may change until set_storage() is called. The worker ends before this does.
  Preparer(net::Loop& loop, Worker& worker, const NodeContext& context, std::string node, Done done);

  // Code lies in the data folder; with `fetch`, what is missing there is fetched and cached.
  void set_storage(FetchBlob fetch);
  void prepare(const PrepareOrder& order);
  void open_ports(const WorkKey& key);  // so that its processes can bind them; they stay leased
  void release(const WorkKey& key);     // its ports, and its code may leave the cache

 private:
  void use_source(const WorkKey& key, const std::string& source);
  Result<void> lay_out_all(const PrepareOrder& order, const std::string& data, const std::stop_token& stop);
  void lay_out_on_worker(const PrepareOrder& order, const NodeContext& context, bool has_namespaces,
                         const std::stop_token& stop);
  void find_ports(const PrepareOrder& order);

  net::Loop& loop_;
  Worker& worker_;
  const NodeContext& context_;
  const std::string node_;
  Done done_;
  SystemClock clock_;
  Random random_;
  std::unique_ptr<Blobs> blobs_;  // used by the worker once set
  bool is_cache_ = false;
  TimePoint trim_at_{};                     // the next time the cache is trimmed
  std::map<WorkKey, std::string> sources_;  // manifests of attempts known here
  std::map<WorkKey, PortLease> leases_;
};

}  // namespace slipway::agent
