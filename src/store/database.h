#pragma once
// A SQLite database with prepared statements that bind and read by type. Failures are Results; text and
// numbers go in as bound parameters only.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/result.h"
#include "store/migrations.h"

struct sqlite3;
struct sqlite3_stmt;

namespace slipway::store {

class Statement {  // borrowed from the database; reset when it goes out of scope
 public:
  Statement(sqlite3* db, sqlite3_stmt* statement) : db_(db), statement_(statement) {}
  Statement(Statement&& other) noexcept
      : db_(other.db_), statement_(std::exchange(other.statement_, nullptr)), at_(other.at_) {}
  Statement(const Statement&) = delete;
  ~Statement();

  Statement& bind(std::int64_t value);
  Statement& bind(std::uint64_t value) { return bind(static_cast<std::int64_t>(value)); }
  Statement& bind(std::uint32_t value) { return bind(static_cast<std::int64_t>(value)); }
  Statement& bind(int value) { return bind(static_cast<std::int64_t>(value)); }
  Statement& bind(bool value) { return bind(static_cast<std::int64_t>(value)); }
  Statement& bind(double value);
  Statement& bind(std::string_view text);  // must outlive run() or the last step()
  Statement& bind(const std::string& text) { return bind(std::string_view(text)); }
  template <class T>
  Statement& bind(const std::optional<T>& value) {
    return value ? bind(*value) : bind_null();
  }
  Statement& bind_bytes(std::string_view bytes);  // must outlive run() or the last step(), as texts
  Statement& bind_null();

  Result<void> run();   // a statement without rows
  Result<bool> step();  // whether there is a row

  std::int64_t integer(int column) const;
  double real(int column) const;
  std::string text(int column) const;
  std::string_view bytes(int column) const;  // until the next step()
  bool is_null(int column) const;

 private:
  sqlite3* db_;
  sqlite3_stmt*
      statement_;  // null when it could not be prepared: the file is not what it should be, as step() says
  int at_ = 0;
};

class Database {
 public:
  // For `vfs`, all connections alike: the index of the log is kept in memory instead of a file beside the
  // database, which needs space. No other process can use the database meanwhile.
  static constexpr const char* index_in_memory = "unix-excl";

  // Error `conflict` when the file is not a database, is damaged, or was written by a newer Slipway; it is
  // not touched then.
  // Its tables are what `migrations` make, in their order.
  static Result<std::unique_ptr<Database>> open(
      const std::string& path, const char* vfs = nullptr,
      const std::vector<const char*>& migrations = store::migrations());
  // The same file for reading only, while another connection writes.
  static Result<std::unique_ptr<Database>> open_reader(const std::string& path, const char* vfs = nullptr);
  ~Database();

  int log_pages() const { return log_pages_; }  // of the write-ahead log, after the last commit
  Statement prepare(const char* sql);           // cached by the address of the literal
  Result<void> execute(const char* sql);
  std::int64_t changed_rows() const;  // by the last statement that ran
  sqlite3* handle() { return db_; }

 private:
  explicit Database(sqlite3* db) : db_(db) {}
  Result<void> migrate(const std::string& path, const std::vector<const char*>& migrations);
  static int committed(void* self, sqlite3* db, const char* name, int pages);

  sqlite3* db_;
  int log_pages_ = 0;
  std::unordered_map<const char*, sqlite3_stmt*> statements_;
};

class Transaction {  // rolls back unless committed
 public:
  explicit Transaction(Database& db) : db_(db) {}
  Transaction(const Transaction&) = delete;
  ~Transaction();
  Result<void> begin();
  Result<void> begin_reading();  // nothing is to be committed
  Result<void> commit();

 private:
  Database& db_;
  bool open_ = false;
};

}  // namespace slipway::store
