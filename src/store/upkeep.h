#pragma once
// What is done with a whole database: checking it, copying it while it is used, putting a copy in its place.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace slipway::store {

struct Report {
  std::string service;                                        // its id; empty: one of before there were ids
  std::uint64_t first_turn = 1, last_turn = 0;                // all it holds, but for those that are lost
  std::vector<std::pair<std::uint64_t, std::uint64_t>> lost;  // after, before: turns it lacks
  std::uint64_t jobs = 0, job_last = 0;
  std::vector<std::string> problems;  // nothing: it is whole
};
// Looks at every page and every index. A service may use the database meanwhile.
Result<Report> check_sqlite(const std::string& database);

// A copy of one moment, synced, under a name that appears only when it is whole and was checked. A service
// may use the database meanwhile.
Result<void> back_up_sqlite(const std::string& database, const std::string& to);

struct Restored {
  Report report;
  std::string moved_aside;          // the database of before; empty: there was none
  std::uint64_t turns_missing = 0;  // of those that the folder knows of
};
// Of a service that does not run. Ids and turns continue after those the folder has seen.
Result<Restored> restore_sqlite(const std::string& backup, const std::string& database);

}  // namespace slipway::store
