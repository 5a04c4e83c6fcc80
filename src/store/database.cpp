#include "store/database.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "base/check.h"
#include "base/file.h"
#include "store/migrations.h"

namespace slipway::store {
namespace {

constexpr int checkpoint_pages = 2'000;

Error error_of(sqlite3* db, std::string_view doing) {
  const int code = sqlite3_extended_errcode(db);
  Error error{ErrorCode::internal, fmt::format("{}: {}", doing, sqlite3_errmsg(db)), ""};
  if ((code & 0xff) == SQLITE_FULL || code == SQLITE_IOERR_WRITE || (code & 0xff) == SQLITE_IOERR) {
    error.code = ErrorCode::unavailable;
    error.hint = "free some space where the data folder lies";
  }
  if ((code & 0xff) == SQLITE_CORRUPT || (code & 0xff) == SQLITE_NOTADB) error.code = ErrorCode::conflict;
  return error;
}

}  // namespace

Statement::~Statement() {
  if (!statement_) return;
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
}

Statement& Statement::bind(std::int64_t value) {
  SLIPWAY_CHECK(!statement_ || sqlite3_bind_int64(statement_, ++at_, value) == SQLITE_OK);
  return *this;
}
Statement& Statement::bind(double value) {
  SLIPWAY_CHECK(!statement_ || sqlite3_bind_double(statement_, ++at_, value) == SQLITE_OK);
  return *this;
}
Statement& Statement::bind(std::string_view text) {
  SLIPWAY_CHECK(!statement_ || sqlite3_bind_text64(statement_, ++at_, text.data() ? text.data() : "",
                                                   text.size(), SQLITE_STATIC, SQLITE_UTF8) == SQLITE_OK);
  return *this;
}
Statement& Statement::bind_bytes(std::string_view bytes) {
  SLIPWAY_CHECK(!statement_ || sqlite3_bind_blob64(statement_, ++at_, bytes.data() ? bytes.data() : "",
                                                   bytes.size(), SQLITE_STATIC) == SQLITE_OK);
  return *this;
}
Statement& Statement::bind_null() {
  SLIPWAY_CHECK(!statement_ || sqlite3_bind_null(statement_, ++at_) == SQLITE_OK);
  return *this;
}

Result<bool> Statement::step() {
  const int code = statement_ ? sqlite3_step(statement_) : SQLITE_CORRUPT;
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return fail(error_of(db_, "the database"));
}

Result<void> Statement::run() {
  auto row = step();
  sqlite3_reset(statement_);
  at_ = 0;
  if (!row) return fail(row.error());
  return {};
}

double Statement::real(int column) const { return sqlite3_column_double(statement_, column); }
std::int64_t Statement::integer(int column) const { return sqlite3_column_int64(statement_, column); }
std::string Statement::text(int column) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  return text ? std::string(text, static_cast<std::size_t>(sqlite3_column_bytes(statement_, column)))
              : std::string();
}
std::string_view Statement::bytes(int column) const {
  const auto* bytes = static_cast<const char*>(sqlite3_column_blob(statement_, column));
  return {bytes ? bytes : "", static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
}
bool Statement::is_null(int column) const { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }

Result<std::unique_ptr<Database>> Database::open(const std::string& path, const char* vfs,
                                                 const std::vector<const char*>& migrations) {
  // For its owner only, also where it was made before; SQLite gives its log the same mode. One that is there
  // is not opened for this: closing it would end the locks that this process has on it.
  if (!Fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)) && errno == EEXIST &&
      ::chmod(path.c_str(), 0600) != 0)
    return fail(system_error("cannot close " + path + " to other users", errno));
  sqlite3* handle = nullptr;
  const int opened = sqlite3_open_v2(path.c_str(), &handle,
                                     SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, vfs);
  std::unique_ptr<Database> db(new Database(handle));
  if (opened != SQLITE_OK) return fail(error_of(handle, "cannot open " + path));
  if (auto migrated = db->migrate(path, migrations); !migrated) return fail(migrated.error());
  // The cache is small because the hot set is; WAL with FULL means a commit is one write and one fdatasync.
  for (const char* pragma : {"PRAGMA journal_mode=WAL", "PRAGMA synchronous=FULL", "PRAGMA cache_size=-4096",
                             "PRAGMA temp_store=MEMORY", "PRAGMA foreign_keys=OFF"})
    if (auto done = db->execute(pragma); !done) return fail(done.error());
  sqlite3_wal_hook(handle, committed, db.get());
  return db;
}

// After each commit: what SQLite's automatic checkpoint does, and the size of the log is kept.
int Database::committed(void* self, sqlite3* db, const char* name, int pages) {
  static_cast<Database*>(self)->log_pages_ = pages;
  if (pages >= checkpoint_pages)
    sqlite3_wal_checkpoint_v2(db, name, SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
  return SQLITE_OK;
}

Result<std::unique_ptr<Database>> Database::open_reader(const std::string& path, const char* vfs) {
  sqlite3* handle = nullptr;
  const int opened = sqlite3_open_v2(path.c_str(), &handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, vfs);
  std::unique_ptr<Database> db(new Database(handle));
  if (opened != SQLITE_OK) return fail(error_of(handle, "cannot open " + path));
  sqlite3_busy_timeout(handle, 1'000);  // only while the log is recovered or begun anew
  for (const char* pragma : {"PRAGMA query_only=ON", "PRAGMA cache_size=-4096", "PRAGMA temp_store=MEMORY"})
    if (auto done = db->execute(pragma); !done) return fail(done.error());
  return db;
}

Result<void> Database::migrate(const std::string& path, const std::vector<const char*>& migrations) {
  const auto damaged = [&](const Error& error) {
    if (error.code != ErrorCode::conflict)
      return fail(error.code, fmt::format("{} cannot be used: {}", path, error.what), error.hint);
    return fail(ErrorCode::conflict, fmt::format("{} cannot be used: {}", path, error.what),
                "nothing was changed; restore it from a copy, or start with another --data folder");
  };
  std::int64_t version = 0;
  {
    Statement ask = prepare("PRAGMA user_version");
    auto row = ask.step();
    if (!row) return damaged(row.error());
    version = ask.integer(0);
  }
  const auto known = static_cast<std::int64_t>(migrations.size());
  if (version > known)
    return fail(ErrorCode::conflict,
                fmt::format("{} was written by a newer Slipway (version {} of its tables; this one knows {})",
                            path, version, known),
                "use that newer slipway, or another --data folder; nothing was changed");
  {
    // A full look at every page, where that takes milliseconds; damage in a large file shows when it is read.
    Statement size = prepare("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size");
    if (auto row = size.step(); !row) return damaged(row.error());
    Statement check = prepare("PRAGMA quick_check(1)");
    auto row = version > 0 && size.integer(0) < (8 << 20) ? check.step() : Result<bool>(false);
    if (!row) return damaged(row.error());
    if (*row && check.text(0) != "ok") return damaged({ErrorCode::conflict, check.text(0), ""});
  }
  for (std::int64_t next = version; next < known; ++next) {
    Transaction transaction(*this);
    if (auto begun = transaction.begin(); !begun) return damaged(begun.error());
    if (auto done = execute(migrations[static_cast<std::size_t>(next)]); !done) return damaged(done.error());
    if (auto done = execute(fmt::format("PRAGMA user_version={}", next + 1).c_str()); !done)
      return damaged(done.error());
    if (auto done = transaction.commit(); !done) return damaged(done.error());
  }
  return {};
}

Database::~Database() {
  for (auto& [sql, statement] : statements_) sqlite3_finalize(statement);
  sqlite3_close_v2(db_);
}

Statement Database::prepare(const char* sql) {
  sqlite3_stmt*& statement = statements_[sql];
  if (!statement) sqlite3_prepare_v3(db_, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
  return Statement(db_, statement);
}

std::int64_t Database::changed_rows() const { return sqlite3_changes64(db_); }

Result<void> Database::execute(const char* sql) {
  if (sqlite3_exec(db_, sql, nullptr, nullptr, nullptr) != SQLITE_OK)
    return fail(error_of(db_, "the database"));
  return {};
}

Result<void> Transaction::begin() {
  auto begun = db_.execute("BEGIN IMMEDIATE");
  open_ = begun.has_value();
  return begun;
}

Result<void> Transaction::begin_reading() {
  auto begun = db_.execute("BEGIN");
  open_ = begun.has_value();
  return begun;
}

Result<void> Transaction::commit() {
  auto committed = db_.execute("COMMIT");
  if (committed) open_ = false;
  return committed;
}

Transaction::~Transaction() {
  // Some failures roll back by themselves; then this one has nothing to do and its error says nothing new.
  if (open_ && sqlite3_get_autocommit(db_.handle()) == 0) (void)db_.execute("ROLLBACK");
}

}  // namespace slipway::store
