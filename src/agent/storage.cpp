#include "agent/storage.h"

#include <fmt/format.h>

#include "base/file.h"
#include "wire/json.h"

namespace slipway::agent {
namespace {

constexpr Duration probe_max = 5s;
constexpr Duration fetch_max = 10min;

Error refusal(const std::string& target, const net::Response& response) {
  const bool is_denied = response.status == 401 || response.status == 403;
  const ErrorCode code = is_denied                ? ErrorCode::denied
                         : response.status == 404 ? ErrorCode::not_found
                                                  : ErrorCode::unavailable;
  return {code,
          fmt::format("{} was answered with status {}: {}", target, response.status,
                      response.body.substr(0, 300)),
          ""};
}

}  // namespace

Result<Storage> probe_storage(net::Client& client, int cancel_fd) {
  const std::string target = "/v1/service/storage";
  net::Client::Options options;
  options.deadline = probe_max;
  options.cancel_fd = cancel_fd;
  const Result<net::Response> response = client.request("GET", target, options);
  if (!response) return fail(response.error());
  if (response->status == 404) return Storage{};
  if (response->status != 200) return fail(refusal(target, *response));
  const wire::Json json = wire::Json::parse(response->body, nullptr, false);
  std::string values[3];
  const char* const names[3] = {"path", "probe", "nonce"};
  for (int i = 0; i < 3; ++i) {
    const auto found = json.is_object() ? json.find(names[i]) : json.end();
    if (found == json.end() || !found->is_string())
      return fail(ErrorCode::invalid, fmt::format("{} was answered without {}", target, names[i]));
    values[i] = found->get<std::string>();
  }
  const auto& [path, probe, nonce] = values;
  const Result<std::string> content = read_file(path + "/" + probe);
  if (!content || *content != nonce) return Storage{};
  return Storage{true, path};
}

Result<void> fetch_blob(net::Client& client, const std::string& hash,
                        const std::function<bool(std::string_view)>& take, int cancel_fd) {
  const std::string target = "/v1/blobs/" + hash;
  net::Client::Options options;
  options.deadline = fetch_max;
  options.cancel_fd = cancel_fd;
  options.on_piece = take;
  const Result<net::Response> response = client.request("GET", target, options);
  if (!response) return fail(response.error());
  if (response->status != 200) return fail(refusal(target, *response));
  return {};
}

}  // namespace slipway::agent
