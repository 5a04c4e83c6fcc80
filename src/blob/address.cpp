#include "blob/address.h"

#include <fmt/format.h>

#include <algorithm>

namespace slipway::blob {
namespace {

bool is_plain(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '$';
  });
}

}  // namespace

Result<ContainerAddress> parse_container_address(std::string_view text) {
  const std::size_t mark = std::min(text.find('?'), text.size());
  const std::string_view place = text.substr(0, mark);
  const auto refuse = [&](std::string_view why) {
    return fail(ErrorCode::invalid,
                fmt::format("'{}' is not the address of a blob container: {}", place, why),
                "write it like https://lab.blob.core.windows.net/data");
  };
  if (place.find("://") == std::string_view::npos)
    return refuse("it begins with neither https:// nor http://");
  auto url = net::parse_web_url(place);
  if (!url) return refuse(url.error().what.substr(url.error().what.rfind(": ") + 2));
  ContainerAddress address;
  address.path = std::exchange(url->path, {});
  address.url = std::move(*url);

  const auto parts = net::split_path(address.path);
  const std::string& host = address.url.host;
  const bool is_in_host = host.find(".blob.") != std::string::npos;
  if (!parts || !std::all_of(parts->begin(), parts->end(), is_plain))
    return refuse("a container's name has only lower-case letters, digits and hyphens");
  if (is_in_host ? parts->size() != 1 : parts->size() != 2)
    return refuse(is_in_host ? "after the host stands the container's name and nothing else"
                             : "after the host stand the account and the container, and nothing else");
  address.account = is_in_host ? host.substr(0, host.find('.')) : parts->front();
  if (!is_plain(address.account)) return refuse("an account's name has only lower-case letters and digits");

  std::string_view query = text.substr(mark);
  while (!query.empty()) {
    query.remove_prefix(1);
    const std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(pair.size());
    const std::size_t equals = std::min(pair.find('='), pair.size());
    const auto name = net::percent_decode(pair.substr(0, equals));
    const auto value = net::percent_decode(pair.substr(std::min(equals + 1, pair.size())));
    if (!name || !value) return refuse("its SAS is not percent-encoded");
    if (!name->empty()) address.sas.emplace_back(*name, *value);
  }
  const auto is_signature = [](const auto& pair) { return pair.first == "sig"; };
  if (!address.sas.empty() && std::none_of(address.sas.begin(), address.sas.end(), is_signature))
    return refuse("what follows the '?' is no SAS: it has no sig");
  return address;
}

}  // namespace slipway::blob
