// Saving and loading quotas.
#include "store/rows.h"
#include "store/sqlite_store.h"

namespace slipway::store {

Result<void> SqliteStore::save_quotas(const control::Changes& changes) {
  for (const QuotaRecord& quota : changes.quotas) {
    if (quota.limits.is_empty()) {
      Statement remove = db_->prepare("DELETE FROM quotas WHERE workspace = ? AND user = ?");
      if (auto done = remove.bind(quota.key.workspace).bind(quota.key.user).run(); !done) return done;
      continue;
    }
    Statement put = db_->prepare("INSERT OR REPLACE INTO quotas VALUES (?,?,?,?,?,?,?,?,?,?)");
    put.bind(quota.key.workspace).bind(quota.key.user);
    for (const QuotaKind kind : all_quota_kinds) put.bind(quota.limits[kind]);
    auto saved = put.bind(quota.author).bind(quota.changed_at.time_since_epoch().count()).run();
    if (!saved) return saved;
  }
  return {};
}

Result<std::vector<QuotaRecord>> SqliteStore::load_quotas() {
  Statement ask = db_->prepare("SELECT * FROM quotas");
  return rows<QuotaRecord>(ask, [](const Statement& row) {
    QuotaRecord quota{{row.text(0), row.text(1)}, {}, row.text(8), time_at(row, 9)};
    int column = 2;
    for (const QuotaKind kind : all_quota_kinds) {
      if (!row.is_null(column)) quota.limits[kind] = large(row, column);
      ++column;
    }
    return quota;
  });
}

}  // namespace slipway::store
