#pragma once
// Which turns the store holds, and whether a node knows of one that it does not hold any more.
//
// A number alone is not enough: a database that was put back counts on from where it ends, and soon has a
// turn of the same number. So each start of the service begins a run of its own, and a turn is known by
// both: it is held where its run is on record and had come so far.
#include <cstdint>
#include <map>
#include <string>

#include "base/encoding.h"
#include "base/hmac.h"
#include "domain/protocol.h"

namespace slipway::control {

struct TurnHistory {
  std::map<std::string, std::uint64_t> runs;  // on record when it was loaded, with the last turn of each
  // Turns of lower numbers are not held against it: it was allowed to continue without those that are lost,
  // or their runs are no longer on record.
  std::uint64_t judged_from = 0;
  std::string key;  // a secret of this store; empty: it keeps no turns

  // Of the same service. `saved`: the last one.
  bool has(const SavedTurn& seen, const SavedTurn& saved) const {
    if (seen.run.empty() || seen.run == saved.run) return seen.number <= saved.number;
    if (seen.number < judged_from) return true;
    const auto run = runs.find(seen.run);
    return run != runs.end() && seen.number <= run->second;
  }
};

// Proof that the service itself sent a node this turn: a node that makes one up cannot make the service
// believe that it has lost turns. `key` never leaves the service's database.
inline std::string turn_proof(const std::string& key, const SavedTurn& turn) {
  if (key.empty()) return {};
  const std::string run = turn.run.empty() ? "" : turn.run + " ";
  return format_hex(hmac_sha256(key, "turn " + run + std::to_string(turn.number)).substr(0, 16));
}

}  // namespace slipway::control
