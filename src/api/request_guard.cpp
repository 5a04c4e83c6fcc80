#include "api/request_guard.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace slipway::api {
namespace {

constexpr std::size_t shown_max = 200;

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

struct Authority {
  std::string host;  // without the brackets of an IPv6 address
  std::string port;  // empty: that of the scheme
  friend bool operator==(const Authority&, const Authority&) = default;
};

std::optional<Authority> parse_authority(std::string_view text) {
  if (text.empty() || text.find_first_of("/@?# \t") != text.npos) return std::nullopt;
  const std::size_t bracket = text.rfind(']');
  const std::size_t colon = text.find(':', bracket == text.npos ? 0 : bracket);
  Authority authority{lower(text.substr(0, colon)),
                      colon == text.npos ? std::string() : std::string(text.substr(colon + 1))};
  std::string& host = authority.host;
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  if (host.ends_with('.')) host.pop_back();
  if (host.empty() || authority.port.find_first_not_of("0123456789") != std::string::npos)
    return std::nullopt;
  return authority;
}

bool is_address(const std::string& host) {
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  return ::inet_pton(AF_INET, host.c_str(), bytes.data()) == 1 ||
         ::inet_pton(AF_INET6, host.substr(0, host.find('%')).c_str(), bytes.data()) == 1;
}

// A page's origin is this service where it names what the request was sent to.
bool is_same_site(std::string_view origin, const std::optional<std::string>& host) {
  const std::size_t scheme_end = origin.find("://");
  if (scheme_end == origin.npos || !host) return false;
  const std::string_view usual_port = origin.substr(0, scheme_end) == "https" ? "443" : "80";
  auto page = parse_authority(origin.substr(scheme_end + 3)), here = parse_authority(*host);
  if (!page || !here) return false;
  // A port that goes without saying may be said.
  for (Authority* one : {&*page, &*here})
    if (one->port == usual_port) one->port.clear();
  return *page == *here;
}

bool has_body(const net::Request& head) {
  const auto length = head.header("Content-Length");
  return head.header("Transfer-Encoding") || (length && *length != "0");
}

constexpr std::array form_types{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data"};
constexpr std::array document_types{"application/json", "application/yaml", "application/x-yaml",
                                    "text/yaml",        "text/x-yaml",      "application/octet-stream"};

template <class Types>
bool has(const Types& types, std::string_view type) {
  return std::find(types.begin(), types.end(), type) != types.end();
}

}  // namespace

RequestGuard::RequestGuard(std::vector<std::string> host_names) : host_names_(std::move(host_names)) {
  for (std::string& name : host_names_) name = lower(name);
}

bool RequestGuard::is_own(std::string_view text) const {
  const auto authority = parse_authority(text);
  if (!authority) return false;
  const std::string& host = authority->host;
  return host == "localhost" || host.ends_with(".localhost") || is_address(host) ||
         std::find(host_names_.begin(), host_names_.end(), host) != host_names_.end();
}

std::optional<RequestRefusal> RequestGuard::check_origin(const net::Request& head) const {
  const auto host = head.header("Host");
  if (host && !is_own(*host))
    return RequestRefusal{421,
                          {ErrorCode::denied,
                           fmt::format("the request is for host '{}', which is no name of this service",
                                       host->substr(0, shown_max)),
                           "use its address, or start it with slipway up --host-name NAME"}};
  const auto origin = head.header("Origin");
  const bool is_read = head.method == "GET" || head.method == "HEAD";
  if (origin && (!is_read || head.header("Upgrade")) && !is_same_site(*origin, host))
    return RequestRefusal{403,
                          {ErrorCode::denied,
                           fmt::format("the request comes from a page of {}, which is another site",
                                       origin->substr(0, shown_max)),
                           "send it from a page of this service, or without a browser"}};
  return std::nullopt;
}

std::optional<RequestRefusal> RequestGuard::check_cookie(const net::Request& head) {
  const bool is_read = head.method == "GET" || head.method == "HEAD";
  if ((is_read && !head.header("Upgrade")) || head.header("Origin")) return std::nullopt;
  return RequestRefusal{
      403,
      {ErrorCode::denied, "the request shows the cookie of a browser, but not from which page it comes",
       "send the token as Authorization: Bearer TOKEN"}};
}

std::optional<RequestRefusal> RequestGuard::check_body(const net::Request& head, Body body) const {
  const auto given = head.header("Content-Type");
  if (!given || !has_body(head)) return std::nullopt;
  std::string type = lower(given->substr(0, given->find(';')));
  type.erase(type.find_last_not_of(" \t") + 1);
  const bool is_form = has(form_types, type);
  if (!is_form && (body.takes_any || has(document_types, type) || type.ends_with("+json")))
    return std::nullopt;
  return RequestRefusal{
      415,
      {ErrorCode::invalid,
       fmt::format("a body of type '{}' is not taken{}", type.substr(0, shown_max),
                   is_form ? ", as a page of another site could send it" : " here"),
       body.takes_any ? "send it with -H 'Content-Type: application/octet-stream'"
                      : "send JSON with -H 'Content-Type: application/json', or YAML as application/yaml"}};
}

}  // namespace slipway::api
