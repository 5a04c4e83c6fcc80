#include "blob/signing.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <map>

#include "base/encoding.h"
#include "base/hmac.h"

namespace slipway::blob {
namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

}  // namespace

std::string string_to_sign(const Signable& request, std::string_view account) {
  std::string text = request.method + "\n";
  for (const std::string_view name :
       {"Content-Encoding", "Content-Language", "Content-Length", "Content-MD5", "Content-Type", "Date",
        "If-Modified-Since", "If-Match", "If-None-Match", "If-Unmodified-Since", "Range"}) {
    if (name == "Content-Length")
      text += request.body_size > 0 ? std::to_string(request.body_size) : "";
    else
      text += net::find_header(request.headers, name).value_or("");
    text += "\n";
  }
  std::map<std::string, std::string> own;
  for (const auto& [name, value] : request.headers)
    if (lower(name).starts_with("x-ms-")) own.emplace(lower(name), value);
  for (const auto& [name, value] : own) text += fmt::format("{}:{}\n", name, value);

  text += fmt::format("/{}{}", account, request.path);
  std::map<std::string, std::vector<std::string>> query;
  for (const auto& [name, value] : request.query) query[lower(name)].push_back(value);
  for (auto& [name, values] : query) {
    std::sort(values.begin(), values.end());
    text += fmt::format("\n{}:{}", name, fmt::join(values, ","));
  }
  return text;
}

std::string shared_key(const Signable& request, std::string_view account, std::string_view key) {
  return fmt::format("SharedKey {}:{}", account,
                     format_base64(hmac_sha256(key, string_to_sign(request, account))));
}

std::string format_http_date(TimePoint time) {
  const std::time_t now = std::chrono::system_clock::to_time_t(time);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  static constexpr const char* days[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr const char* months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                           "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  return fmt::format("{}, {:02} {} {} {:02}:{:02}:{:02} GMT", days[parts.tm_wday], parts.tm_mday,
                     months[parts.tm_mon], parts.tm_year + 1900, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

}  // namespace slipway::blob
