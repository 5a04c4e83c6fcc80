#include "compat/batchai/links.h"

#include <fmt/format.h>

#include <charconv>

#include "base/hmac.h"
#include "net/http.h"

namespace slipway::batchai {
namespace {

constexpr std::string_view prefix = "/batchai/download/";

std::string tail_of(const Link& link) {
  std::string tail = fmt::format("{}/{}/{}", net::percent_encode(link.workspace), link.job.value(),
                                 net::percent_encode(link.directory));
  std::string_view rest = link.path;
  while (!rest.empty()) {
    const std::size_t slash = std::min(rest.find('/'), rest.size());
    tail += "/" + net::percent_encode(rest.substr(0, slash));
    rest.remove_prefix(std::min(slash + 1, rest.size()));
  }
  return tail;
}

template <class Number>
bool read(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size();
}

}  // namespace

bool is_link(std::string_view path) { return path.starts_with(prefix); }

std::string sign_link(const Link& link, TimePoint expiry, const Sealer& sealer) {
  const std::int64_t seconds = expiry.time_since_epoch().count() / 1'000'000;
  const std::string tail = tail_of(link);
  return fmt::format("{}{}/{}/{}", prefix, seconds, sealer.sign(fmt::format("link:{}/{}", seconds, tail)),
                     tail);
}

Answer<Link> open_link(std::string_view path, TimePoint now, const Sealer& sealer) {
  const auto parts = net::split_path(path);
  std::int64_t expiry = 0;
  std::uint64_t job = 0;
  if (!parts || parts->size() < 8 || !read((*parts)[2], expiry) || !read((*parts)[5], job))
    return refuse(404, "ResourceNotFound", "this is no link to an output file");
  Link link{(*parts)[4], JobId{job}, (*parts)[6], {}};
  for (std::size_t i = 7; i < parts->size(); ++i) link.path += (i == 7 ? "" : "/") + (*parts)[i];
  if (!sealer.is_signature((*parts)[3], fmt::format("link:{}/{}", expiry, tail_of(link))))
    return refuse(403, "AuthorizationFailed", "the signature of this link is not ours; list the files again");
  if (now.time_since_epoch().count() / 1'000'000 >= expiry)
    return refuse(403, "AuthorizationFailed", "this link has expired; list the files again");
  return link;
}

}  // namespace slipway::batchai
