// Saving and loading quotas.
#include "store/rows.h"
#include "store/sqlite_store.h"

namespace slipway::store {
namespace {

constexpr QuotaKind first_quota_columns[] = {QuotaKind::jobs,  QuotaKind::tasks, QuotaKind::nodes,
                                             QuotaKind::cores, QuotaKind::gpus,  QuotaKind::requests};

DiskUse disk_use_from(const Statement& row) {
  return {{row.text(0), row.text(1)}, row.text(2), large(row, 3)};
}

}  // namespace

Result<void> SqliteStore::save_quotas(const control::Changes& changes) {
  for (const QuotaRecord& quota : changes.quotas) {
    if (quota.limits.is_empty()) {
      Statement remove = db_->prepare("DELETE FROM quotas WHERE workspace = ? AND user = ?");
      if (auto done = remove.bind(quota.key.workspace).bind(quota.key.user).run(); !done) return done;
      continue;
    }
    Statement put = db_->prepare("INSERT OR REPLACE INTO quotas VALUES (?,?,?,?,?,?,?,?,?,?,?)");
    put.bind(quota.key.workspace).bind(quota.key.user);
    for (const QuotaKind kind : first_quota_columns) put.bind(quota.limits[kind]);
    put.bind(quota.author).bind(quota.changed_at.time_since_epoch().count());
    if (auto saved = put.bind(quota.limits[QuotaKind::disk]).run(); !saved) return saved;
  }
  return save_disk_use(changes);
}

Result<void> SqliteStore::save_disk_use(const control::Changes& changes) {
  for (const DiskUse& use : changes.disk) {
    Statement change =
        use.bytes == 0 ? db_->prepare("DELETE FROM disk_use WHERE workspace = ? AND user = ? AND thing = ?")
                       : db_->prepare("INSERT OR REPLACE INTO disk_use VALUES (?,?,?,?)");
    change.bind(use.key.workspace).bind(use.key.user).bind(use.thing);
    if (use.bytes > 0) change.bind(static_cast<std::int64_t>(use.bytes));
    if (auto done = change.run(); !done) return done;
  }
  return {};
}

Result<std::vector<QuotaRecord>> SqliteStore::load_quotas() {
  Statement ask = db_->prepare("SELECT * FROM quotas");
  return rows<QuotaRecord>(ask, [](const Statement& row) {
    QuotaRecord quota{{row.text(0), row.text(1)}, {}, row.text(8), time_at(row, 9)};
    int column = 2;
    for (const QuotaKind kind : first_quota_columns) {
      if (!row.is_null(column)) quota.limits[kind] = large(row, column);
      ++column;
    }
    if (!row.is_null(10)) quota.limits[QuotaKind::disk] = large(row, 10);
    return quota;
  });
}

Result<std::vector<DiskUse>> SqliteStore::load_disk_use() {
  Statement ask =
      db_->prepare("SELECT workspace, user, '', sum(bytes) FROM disk_use GROUP BY workspace, user");
  return rows<DiskUse>(ask, disk_use_from);
}

Result<std::uint64_t> SqliteStore::disk_of(const QuotaKey& key, const std::string& thing) {
  Statement ask = db_->prepare("SELECT bytes FROM disk_use WHERE workspace = ? AND user = ? AND thing = ?");
  auto found = first_row<std::uint64_t>(ask.bind(key.workspace).bind(key.user).bind(thing),
                                        [](const Statement& row) { return large(row, 0); });
  return found.map([](const std::optional<std::uint64_t>& bytes) { return bytes.value_or(0); });
}

Result<std::vector<DiskUse>> SqliteReads::disk_of_code(const std::string& workspace) {
  Statement ask =
      db_.prepare("SELECT * FROM disk_use WHERE workspace = ? AND thing >= 'code/' AND thing < 'code0'");
  return rows<DiskUse>(ask.bind(workspace), disk_use_from);
}

Result<std::vector<std::pair<std::string, std::string>>> SqliteReads::sources_of(
    const std::string& workspace) {
  Statement ask =
      db_.prepare("SELECT DISTINCT submitted_by, source FROM jobs WHERE workspace = ? AND source <> ''");
  return rows<std::pair<std::string, std::string>>(
      ask.bind(workspace), [](const Statement& row) { return std::pair(row.text(0), row.text(1)); });
}

}  // namespace slipway::store
