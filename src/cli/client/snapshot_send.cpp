#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <map>
#include <set>

#include "base/sha256.h"
#include "cli/client/snapshot.h"
#include "cli/output/progress.h"
#include "wire/records.h"
#include "wire/snapshot.h"

namespace slipway::cli {
namespace {

constexpr std::size_t hashes_per_request = 10'000;

// Those of the hashes that the service does not have.
Outcome<std::set<std::string>> find_missing(Service& service, const std::vector<std::string>& hashes) {
  std::set<std::string> missing;
  for (std::size_t begin = 0; begin < hashes.size(); begin += hashes_per_request) {
    std::string list;
    for (std::size_t i = begin; i < std::min(begin + hashes_per_request, hashes.size()); ++i)
      list += (list.empty() ? "" : ",") + wire::quote(hashes[i]);
    const Outcome<Value> answer = service.send("POST", resource({"blobs", "missing"}),
                                               wire::format_object({{"hashes", "[" + list + "]"}}));
    if (!answer) return give_up(answer);
    for (const Value& hash : answer->items_at("missing")) missing.insert(hash.scalar());
  }
  return missing;
}

Outcome<void> send_blob(Service& service, const std::string& hash, net::Client::Options options) {
  options.headers = {{"Content-Type", "application/octet-stream"}};
  const Outcome<net::Response> stored = service.request("PUT", resource({"blobs", hash}), options);
  if (!stored) return give_up(stored);
  return {};
}

}  // namespace

Outcome<std::string> send_code(Service& service, const Code& code, const SendOptions& options) {
  const Snapshot& snapshot = code.snapshot;
  std::map<std::string, const SnapshotEntry*> files;  // equal contents are sent once
  for (const SnapshotEntry& entry : snapshot.entries)
    if (entry.kind == SnapshotKind::file) files.emplace(entry.hash, &entry);
  const std::string manifest = wire::format(snapshot);
  const std::string manifest_hash = sha256_hex(manifest);
  std::vector<std::string> hashes{manifest_hash};
  for (const auto& [hash, entry] : files) hashes.push_back(hash);

  Outcome<std::set<std::string>> missing = find_missing(service, hashes);
  if (!missing) return give_up(missing);
  Bytes bytes = 0;
  for (const std::string& hash : *missing)
    if (const auto file = files.find(hash); file != files.end()) bytes += file->second->size;
  Progress progress(options.show_progress, "sending code", missing->size(), bytes);
  for (const auto& [hash, entry] : files) {
    if (!missing->contains(hash)) continue;
    net::Client::Options blob;
    blob.body_file = code.where.at(entry->path);
    if (const Outcome<void> sent = send_blob(service, hash, std::move(blob)); !sent) return give_up(sent);
    progress.add(entry->size);
    progress.file_done();
  }
  // The manifest goes last: when the service has it, it has everything it names.
  if (missing->contains(manifest_hash)) {
    net::Client::Options blob;
    blob.body = manifest;
    if (const Outcome<void> sent = send_blob(service, manifest_hash, std::move(blob)); !sent)
      return give_up(sent);
  }
  return manifest_hash;
}

}  // namespace slipway::cli
