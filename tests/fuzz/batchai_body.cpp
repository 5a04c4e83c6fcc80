// Bodies and paths of the Batch AI API: PUT of a job, a cluster, a file server or a workspace, by the first
// byte.
#include "compat/batchai/body.h"
#include "compat/batchai/layout.h"
#include "compat/batchai/paths.h"
#include "compat/batchai/translate.h"
#include "target.h"

using namespace slipway;
using namespace slipway::batchai;

namespace {

void translate(Body kind, Value body) {
  static const Sealer sealer = Sealer::for_now();
  static const FileServers servers{{"lab/ml/main/nas", "nfs.main.nas"}};
  const ResourceId resource{"lab", "ml", "main", "digits", "hello"};
  if (kind == Body::job) {
    PoolRecord pool;
    pool.name = "c1";
    pool.per_node.cores = 1000;
    complete_job(body);
    const auto job = translate_job(body, {resource, "uuid", pool, false, servers, sealer});
    SLIPWAY_CHECK(job || !job.error().message.empty());
    if (job)
      for (const std::string& folder : job->tasks.front().folders)
        SLIPWAY_CHECK(folder.starts_with(mount_root) && (folder + "/").find("/../") == std::string::npos);
  } else if (kind == Body::cluster) {
    complete_cluster(body);
    const auto pool =
        translate_cluster(body, {resource, "uuid", "c1", {.cores = 2000}, Duration(1), servers, sealer});
    SLIPWAY_CHECK(pool || !pool.error().message.empty());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const Body kinds[] = {Body::job, Body::cluster, Body::file_server, Body::workspace, Body::cluster_change};
  const Body kind = kinds[data[0] % 5];
  const std::string_view text = fuzz::text(data + 1, size - 1);
  const auto target = parse_path(text);
  SLIPWAY_CHECK(target || !target.error().message.empty());
  static_cast<void>(lines_of(text));
  const auto body = accept_body(kind, text);
  SLIPWAY_CHECK(body || !body.error().message.empty());
  if (!body) return 0;
  // What is kept reads as the same again.
  const std::string kept = format(without_secrets(kind, *body));
  Problems problems;
  SLIPWAY_CHECK(format(without_secrets(kind, read_body(kind, parse_stored(kept), problems))) == kept);
  translate(kind, *body);
  return 0;
}
