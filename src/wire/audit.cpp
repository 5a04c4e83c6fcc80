#include "wire/audit.h"

#include <fmt/format.h>

#include "base/sha256.h"
#include "wire/document.h"
#include "wire/json_tree.h"
#include "wire/value.h"

namespace slipway::wire {
namespace {

constexpr std::size_t value_size_max = 8 << 10;
constexpr std::string_view hash_mark = ",\"hash\":\"";
constexpr std::size_t hash_size = 64;
constexpr std::size_t tail_size = hash_mark.size() + hash_size + 2;  // the hash, a quote and the brace

struct Parts {
  std::uint64_t number = 0;
  std::string previous;
  std::string hash;
};

Result<Parts> parts_of(std::string_view line) {
  const auto broken = [](std::string_view why) {
    return fail(ErrorCode::conflict, fmt::format("it {}", why));
  };
  if (line.size() < tail_size || line.substr(line.size() - tail_size, hash_mark.size()) != hash_mark ||
      !line.ends_with("\"}"))
    return broken("does not end with its hash");
  Parts parts;
  parts.hash = line.substr(line.size() - hash_size - 2, hash_size);
  if (sha256_hex(line.substr(0, line.size() - tail_size)) != parts.hash)
    return broken("was changed: it does not have its hash");
  try {
    const Json json = parse_tree(line);
    parts.number = integer<std::uint64_t>(json.at("number"));
    parts.previous = json.at("previous").get<std::string>();
  } catch (const Json::exception&) {
    return broken("is no entry");
  }
  return parts;
}

bool is_secret(std::string key) {
  for (char& c : key) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  for (const char* word : {"secret", "token", "password", "key", "sas"})
    if (key.find(word) != std::string::npos) return true;
  return key == "code";  // to sign in with
}

void hide_secrets(Value& value) {
  for (auto& [key, field] : value.fields)
    if (is_secret(key))
      field = Value(std::string("(hidden)"));
    else
      hide_secrets(field);
  for (Value& item : value.items) hide_secrets(item);
}

}  // namespace

std::string audited(std::string_view json) {
  if (json.empty() || json.size() > value_size_max) return {};
  auto value = parse_json(json, "a value");
  if (!value || value->kind == Value::Kind::null) return {};
  hide_secrets(*value);
  return format_json(*value);
}

std::string AuditChain::append(const AuditEntry& entry) {
  std::string line;
  append(entry, line);
  return line;
}

void AuditChain::append(const AuditEntry& entry, std::string& line) {
  const std::size_t begin = line.size();
  line.append("{\"number\":").append(std::to_string(++count_));
  line.append(",\"time\":\"").append(format_time(entry.time)).append("\"");
  const auto text = [&](std::string_view name, std::string_view value) {
    if (value.empty()) return;
    line.append(",\"").append(name).append("\":");
    append_quoted(line, value);
  };
  text("user", entry.user);
  text("role", entry.role);
  text("workspace", entry.workspace);
  text("from", entry.from);
  text("method", entry.method);
  text("path", entry.path);
  text("object", entry.object);
  text("verb", entry.verb);
  text("decision", entry.is_allowed ? "allowed" : "denied");
  line.append(",\"status\":").append(std::to_string(entry.status));
  text("made", entry.made);
  if (!entry.before.empty()) line.append(",\"before\":").append(entry.before);
  if (!entry.after.empty()) line.append(",\"after\":").append(entry.after);
  text("previous", hash_);
  hash_ = sha256_hex(std::string_view(line).substr(begin));
  line.append(hash_mark).append(hash_).append("\"}\n");
}

Result<void> AuditChain::follow(std::string_view line) {
  const auto parts = parts_of(line);
  if (!parts) return fail(parts.error());
  if (parts->number != count_ + 1)
    return fail(ErrorCode::conflict,
                fmt::format("it is entry {}, and should be {}", parts->number, count_ + 1));
  if (parts->previous != hash_) return fail(ErrorCode::conflict, "it does not follow the one before it");
  count_ = parts->number;
  hash_ = parts->hash;
  return {};
}

Result<void> AuditChain::resume(std::string_view line) {
  const auto parts = parts_of(line);
  if (!parts) return fail(parts.error());
  count_ = parts->number;
  hash_ = parts->hash;
  return {};
}

}  // namespace slipway::wire
