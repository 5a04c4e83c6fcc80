#pragma once
// Private to store/: rows of the SQLite tables as records.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "domain/records.h"
#include "domain/user.h"
#include "store/database.h"

namespace slipway::store {

inline TimePoint time_at(const Statement& row, int column) {
  return TimePoint(Duration(row.integer(column)));
}
inline std::optional<TimePoint> maybe_time(const Statement& row, int column) {
  return row.is_null(column) ? std::nullopt : std::optional(time_at(row, column));
}
inline std::optional<int> maybe_int(const Statement& row, int column) {
  return row.is_null(column) ? std::nullopt : std::optional(static_cast<int>(row.integer(column)));
}
inline std::uint32_t small(const Statement& row, int column) {
  return static_cast<std::uint32_t>(row.integer(column));
}
inline std::uint64_t large(const Statement& row, int column) {
  return static_cast<std::uint64_t>(row.integer(column));
}

inline TaskCounts counts_at(const Statement& row, int column) {
  return {large(row, column),     large(row, column + 1), large(row, column + 2), large(row, column + 3),
          large(row, column + 4), large(row, column + 5), large(row, column + 6)};
}

Environment unpack_environment(std::string_view text);
std::vector<std::string> unpack_lines(const std::string& text);
// SELECT * FROM pools; `damaged` is set where its settings cannot be read.
PoolRecord pool_from(const Statement& row, std::optional<Error>& damaged);
JobRecord job_from(const Statement& row);                            // SELECT * FROM jobs
TaskRecord task_from(const Statement& row);                          // SELECT * FROM tasks
AttemptRecord attempt_from(const Statement& row);                    // SELECT * FROM attempts
EventRecord event_from(const Statement& row);                        // SELECT * FROM events
FolderRecord folder_from(const Statement& row);                      // SELECT * FROM folders
DatastoreRecord datastore_from(const Statement& row);                // SELECT * FROM datastores
SecretRecord secret_from(const Statement& row);                      // SELECT * FROM secrets
UserRecord user_from(const Statement& row);                          // SELECT * FROM users
MemberRecord member_from(const Statement& row);                      // SELECT * FROM members
std::vector<std::string> unpack_node_names(std::string_view nodes);  // of attempts.nodes

// Every row of a statement through `read`.
template <class T, class Read>
Result<std::vector<T>> rows(Statement& statement, Read read) {
  std::vector<T> all;
  for (;;) {
    auto row = statement.step();
    if (!row) return fail(row.error());
    if (!*row) return all;
    all.push_back(read(statement));
  }
}

template <class T, class Read>
Result<std::optional<T>> first_row(Statement& statement, Read read) {
  auto row = statement.step();
  if (!row) return fail(row.error());
  return *row ? std::optional<T>(read(statement)) : std::nullopt;
}

}  // namespace slipway::store
