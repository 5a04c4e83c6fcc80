#include "store/track_image.h"

#include <fmt/format.h>

#include <vector>

#include "store/database.h"

namespace slipway::store {
namespace {

// A row is what memory has of one entity; nothing is asked of the database but all of them, at the start.
const std::vector<const char*>& track_migrations() {
  static const std::vector<const char*> all{R"sql(
CREATE TABLE entities (
  kind INTEGER NOT NULL,
  workspace TEXT NOT NULL,
  id TEXT NOT NULL,
  body BLOB NOT NULL,
  PRIMARY KEY (kind, workspace, id)
) WITHOUT ROWID;
-- The last record of the journal that the rows contain.
CREATE TABLE applied (number INTEGER NOT NULL);
INSERT INTO applied VALUES (0);
)sql"};
  return all;
}

class TrackImage final : public track::Image {
 public:
  explicit TrackImage(std::unique_ptr<Database> database) : database_(std::move(database)) {}

  Result<std::uint64_t> load(
      const std::function<Result<void>(const track::EntityName& name, std::string_view body)>& row) override {
    // Ordered by kind, so that experiments come before their runs.
    Statement select = database_->prepare("SELECT kind, workspace, id, body FROM entities ORDER BY kind");
    while (true) {
      auto more = select.step();
      if (!more) return fail(more.error());
      if (!*more) break;
      const track::EntityName name{static_cast<track::Kind>(select.integer(0)), select.text(1),
                                   select.text(2)};
      if (auto loaded = row(name, select.bytes(3)); !loaded) return fail(loaded.error());
    }
    Statement applied = database_->prepare("SELECT number FROM applied");
    auto found = applied.step();
    if (!found) return fail(found.error());
    return static_cast<std::uint64_t>(applied.integer(0));
  }

  Result<void> save(std::uint64_t number, const std::vector<Row>& rows) override {
    Transaction transaction(*database_);
    if (auto begun = transaction.begin(); !begun) return begun;
    for (const Row& row : rows)
      if (auto done = save_row(row); !done) return done;
    Statement update = database_->prepare("UPDATE applied SET number = ?");
    if (auto done = update.bind(number).run(); !done) return done;
    return transaction.commit();
  }

 private:
  Result<void> save_row(const Row& row) {
    const auto kind = static_cast<int>(row.name.kind);
    if (!row.body) {
      Statement erase =
          database_->prepare("DELETE FROM entities WHERE kind = ? AND workspace = ? AND id = ?");
      return erase.bind(kind).bind(row.name.workspace).bind(row.name.id).run();
    }
    Statement put = database_->prepare(
        "INSERT INTO entities (kind, workspace, id, body) VALUES (?, ?, ?, ?) "
        "ON CONFLICT (kind, workspace, id) DO UPDATE SET body = excluded.body");
    return put.bind(kind).bind(row.name.workspace).bind(row.name.id).bind_bytes(*row.body).run();
  }

  std::unique_ptr<Database> database_;
};

}  // namespace

Result<std::unique_ptr<track::Image>> open_track_image(const std::string& path) {
  // The service alone uses it, also where there is no space for an index beside it.
  auto database = Database::open(path, Database::index_in_memory, track_migrations());
  if (!database) return fail(database.error());
  return std::make_unique<TrackImage>(std::move(*database));
}

}  // namespace slipway::store
