#pragma once
// How a request to Azure Blob Storage proves that it knows the account's key ("Shared Key"). Pure.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "net/http.h"

namespace slipway::blob {

// As a request is sent: the path percent-encoded, the query not yet.
struct Signable {
  std::string method;                                      // PUT
  std::string path;                                        // /data/a%20file
  std::vector<std::pair<std::string, std::string>> query;  // comp, list
  net::Headers headers;
  std::uint64_t body_size = 0;
};

// What is signed: the method, twelve standard fields, the x-ms- fields and the resource. A store that has its
// accounts in the path (Azurite) has the account twice there: once by this rule, once from the path.
std::string string_to_sign(const Signable& request, std::string_view account);
// The value of Authorization. `key` is the account's key as bytes.
std::string shared_key(const Signable& request, std::string_view account, std::string_view key);

std::string format_http_date(TimePoint time);  // Mon, 02 Mar 2026 10:00:00 GMT

}  // namespace slipway::blob
