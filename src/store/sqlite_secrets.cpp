// Saving secrets by name, and sealing those of jobs anew.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "store/rows.h"
#include "store/sqlite_store.h"
#include "wire/job_file.h"

namespace slipway::store {

Result<void> SqliteStore::save_secrets(const control::Changes& changes) {
  for (const SecretRecord& secret : changes.secrets) {
    const std::string earlier = fmt::format("{}", fmt::join(secret.earlier, "\n"));
    Statement put = db_->prepare("INSERT OR REPLACE INTO secrets VALUES (?,?,?,?,?,?,?)");
    auto saved = put.bind(secret.key.workspace)
                     .bind(secret.key.user)
                     .bind(secret.key.name)
                     .bind(secret.sealed)
                     .bind(earlier)
                     .bind(secret.author)
                     .bind(secret.changed_at.time_since_epoch().count())
                     .run();
    if (!saved) return saved;
  }
  for (const SecretKey& key : changes.secrets_removed) {
    Statement remove = db_->prepare("DELETE FROM secrets WHERE workspace = ? AND user = ? AND name = ?");
    if (auto done = remove.bind(key.workspace).bind(key.user).bind(key.name).run(); !done) return done;
  }
  return {};
}

namespace {

struct StoredSpec {
  std::int64_t job = 0, group = 0;
  std::string text;
};
constexpr int specs_at_once = 500;

}  // namespace

Result<void> SqliteStore::seal_specs_anew(const SealAnew& seal) {
  for (StoredSpec last;;) {
    Transaction transaction(*db_);
    if (auto begun = transaction.begin(); !begun) return begun;
    std::vector<StoredSpec> found;
    {
      Statement ask = db_->prepare(
          "SELECT job, grp, spec FROM task_specs WHERE (job, grp) > (?, ?) AND instr(spec, '\"sealed:') > 0 "
          "ORDER BY job, grp LIMIT ?");
      auto all =
          rows<StoredSpec>(ask.bind(last.job).bind(last.group).bind(specs_at_once), [](const Statement& row) {
            return StoredSpec{row.integer(0), row.integer(1), row.text(2)};
          });
      if (!all) return fail(all.error());
      found = std::move(*all);
    }
    if (found.empty()) return {};
    for (const StoredSpec& stored : found) {
      auto spec = wire::parse_task_spec(stored.text);
      if (!spec) return fail(spec.error());
      for (auto& [variable, value] : spec->secrets) value = seal(value, variable);
      const std::string text = wire::format_task_spec(*spec);
      Statement put = db_->prepare("UPDATE task_specs SET spec = ? WHERE job = ? AND grp = ?");
      if (auto saved = put.bind(text).bind(stored.job).bind(stored.group).run(); !saved) return saved;
    }
    if (auto committed = transaction.commit(); !committed) return committed;
    last = found.back();
    last.text.clear();
  }
}

}  // namespace slipway::store
