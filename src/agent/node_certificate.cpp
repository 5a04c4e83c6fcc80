#include "agent/node_certificate.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/file.h"
#include "net/certificates.h"
#include "wire/json.h"

namespace slipway::agent {
namespace {

constexpr Duration answer_max = 10s;
constexpr Duration check_wait_max = 1h;

std::string certificate_in(const std::string& folder) { return folder + "/node.crt"; }
std::string key_in(const std::string& folder) { return folder + "/node.key"; }

}  // namespace

void show_certificate(net::Url& url, const std::string& folder) {
  if (!url.is_secure) return;
  url.certificate_file = certificate_in(folder);
  url.key_file = key_in(folder);
}

bool needs_certificate(const std::string& folder, TimePoint now) {
  const auto text = read_file(certificate_in(folder));
  return !text || net::should_renew(*text, now);
}

Duration certificate_check_wait(const std::string& folder) {
  const auto text = read_file(certificate_in(folder));
  const auto facts = text ? net::read_certificate(*text) : fail(text.error());
  const Duration lifetime = facts ? facts->not_after - facts->not_before : Duration(check_wait_max);
  return std::clamp<Duration>(lifetime / 12, 1s, check_wait_max);
}

Result<void> fetch_certificate(const net::Url& url, const net::Headers& headers, const std::string& folder,
                               int cancel_fd) {
  auto key = net::make_key();
  if (!key) return fail(key.error());
  auto request = net::make_certificate_request(*key);
  if (!request) return fail(request.error());
  net::Url plain = url;  // the old one may have expired
  plain.certificate_file.clear();
  net::Client client(plain, headers);
  net::Client::Options options;
  options.body = wire::dump(wire::Json{{"request", *request}});
  options.headers = {{"Content-Type", "application/json"}};
  options.deadline = answer_max;
  options.cancel_fd = cancel_fd;
  const auto answer = client.request("POST", "/v1/nodes/certificate", options);
  if (!answer) return fail(answer.error());
  if (answer->status != 200)
    return fail(answer->status >= 500 ? ErrorCode::unavailable : ErrorCode::denied,
                fmt::format("the service gave no certificate (status {})", answer->status));
  const wire::Json json = wire::Json::parse(answer->body, nullptr, false);
  const auto found = json.is_object() ? json.find("certificate") : json.end();
  if (found == json.end() || !found->is_string())
    return fail(ErrorCode::invalid, "the service's answer has no certificate");
  return write_file_durably(key_in(folder), *key, 0600).and_then([&] {
    return write_file_durably(certificate_in(folder), found->get<std::string>(), 0644);
  });
}

}  // namespace slipway::agent
