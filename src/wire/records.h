#pragma once
// Records as the API's JSON. Times are RFC 3339, sizes bytes, durations seconds, cores numbers.
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "domain/queue.h"
#include "domain/records.h"
#include "wire/value.h"

namespace slipway::wire {

std::string format(const PoolView& view);
std::string format(const NodeView& view);
// Without the tags that are reserved. `spec` is JSON and added when not empty, `notes` likewise.
std::string format(const JobRecord& job, const std::vector<ReservedTags>& reserved,
                   const std::string& spec = {}, const std::vector<std::string>& notes = {});
std::string format(const TaskView& view);
std::string format(const TaskView& view, const TaskSpec& spec, const std::vector<AttemptRecord>& attempts);
std::string format(const AttemptRecord& attempt, const TaskSpec& spec);
std::string format_of_job(const AttemptRecord& attempt, const TaskSpec& spec);  // with the name of its task
std::string format(const EventRecord& event);
std::string format(const QueueLine& line);
std::string format(const TokenRecord& token, const std::string& secret = {});

// {"items": [...], "next": ...}, from items that are JSON already.
std::string format_list(const std::vector<std::string>& items, const std::optional<std::string>& next);
// application/problem+json.
std::string format_problem(int status, const Error& error);
// An object of texts, numbers and booleans, for small answers; values are JSON already.
std::string format_object(const std::vector<std::pair<std::string, std::string>>& fields);

Result<PoolRequest> parse_pool_request(std::string_view json, const std::vector<ReservedTags>& reserved = {});

struct TokenRequest {
  std::string name;
  Role role = Role::member;
  std::string workspace;              // empty: that of who asks
  std::optional<std::uint32_t> uses;  // of a node token: how many machines it lets in
  TokenScope scope = TokenScope::admin;
  std::string pool;
  std::string user;                    // whose it is; empty: of the user called `name`, if there is one
  std::optional<Duration> expires_in;  // absent: it is good until it is revoked
};
Result<TokenRequest> parse_token_request(std::string_view json);
Result<std::optional<Duration>> parse_rotate_request(std::string_view json);  // expires_in
Result<bool> parse_stop_request(std::string_view json);                       // keep_running
Result<std::string> parse_certificate_request(std::string_view json);         // request, as PEM
Result<std::vector<std::string>> parse_hashes(std::string_view json);

}  // namespace slipway::wire
