#pragma once
// Lines of the audit log: JSON, each with the hash of the one before it and its own.
//
// A line that is changed, taken out or put in breaks the chain from there on. What is cut off at the end
// shows only to who remembers the last hash.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"

namespace slipway::wire {

struct AuditEntry {
  TimePoint time{};
  std::string user;  // empty: nobody known
  std::string role;
  std::string workspace;
  std::string from;  // address of the client
  std::string method;
  std::string path;
  std::string object;  // of the access table
  std::string verb;
  bool is_allowed = false;
  int status = 0;
  std::string made;    // address of what was made
  std::string before;  // JSON, or empty
  std::string after;   // likewise
};

class AuditChain {
 public:
  // The next line, with its line end; or at the end of `text`.
  std::string append(const AuditEntry& entry);
  void append(const AuditEntry& entry, std::string& text);
  // Takes the next line of a log, without its line end. Error `conflict` where it does not follow.
  Result<void> follow(std::string_view line);
  // Continues after this line, which is not checked against one before it.
  Result<void> resume(std::string_view line);

  std::uint64_t count() const { return count_; }
  const std::string& hash() const { return hash_; }  // of the last line

 private:
  std::uint64_t count_ = 0;
  std::string hash_ = std::string(64, '0');
};

// JSON without the values of keys that hold secrets, as text for an entry; empty where it is no JSON, or
// larger than 8 KiB.
std::string audited(std::string_view json);

}  // namespace slipway::wire
