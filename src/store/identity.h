#pragma once
// Private to store/: whether a database is the one its folder belongs to, and what to do where it is not.
#include <optional>
#include <string>

#include "store/mark.h"
#include "store/sqlite.h"

namespace slipway::store {

// What is known of a database before it is opened to be written. Nothing is changed.
struct Found {
  bool is_there = false;            // the file, with something in it
  std::optional<Mark> identity;     // absent: it has none, or cannot be read
  std::string problem;              // why it cannot be read; empty: it can
  bool has_identity_table = false;  // written by a Slipway that keeps one
};
Found look_at(const std::string& database);

// What the folder knows without its database.
struct FolderKnows {
  std::optional<Mark> mark;
  bool mark_is_damaged = false;
  std::uint64_t job_last = 0;  // the highest job that has a folder; looked for only where it is needed
};
Result<FolderKnows> look_at_folder(const std::string& database, OpenAs as);

// How the database is opened, or the refusal: what was found, why it is refused, what to do.
struct Decision {
  bool make_new = false;            // a database that is there is moved aside before
  std::optional<Mark> lost_before;  // to continue after: ids are given from here on, turns far behind it
};
Result<Decision> decide(const std::string& database, const Found& found, const FolderKnows& folder,
                        OpenAs as);

// Moves a database away under another name, with all it consists of: it can be put back whole. The name;
// empty when there was nothing.
Result<std::string> move_aside(const std::string& database);

// Turns of a service that continued with a loss are so far from those it lost that none is counted twice. Ids
// likewise, where nothing in the folder says which were given: nodes may have files of the jobs that had
// them.
constexpr std::uint64_t turns_skipped = 1'000'000;
constexpr std::uint64_t ids_skipped = 1'000'000;
constexpr std::uint64_t events_skipped = 100'000;  // less than are kept: those before stay

}  // namespace slipway::store
