#include "wire/secret.h"

#include <fmt/format.h>

#include "base/encoding.h"
#include "wire/document.h"
#include "wire/fields.h"
#include "wire/json.h"
#include "wire/utf8.h"

namespace slipway::wire {

Result<std::string> parse_secret_request(std::string_view json) {
  const auto root = parse_body(json);
  if (!root) return fail(root.error());
  FieldReader reader(*root, "the request", "");
  std::string value = reader.text("value");
  const std::string encoded = reader.text("base64");
  const bool is_text = reader.has("value"), is_encoded = reader.has("base64");
  if (auto finished = reader.finish(); !finished) return fail(finished.error());
  if (is_text == is_encoded)
    return fail(ErrorCode::invalid, "the request gives no value, or two",
                R"(send {"value": TEXT} or {"base64": TEXT})");
  if (is_encoded) {
    auto bytes = parse_base64(encoded);
    if (!bytes) return fail(ErrorCode::invalid, "the value is not base64", "encode it without line breaks");
    value = std::move(*bytes);
  }
  if (value.empty())
    return fail(ErrorCode::invalid, "the value is empty", "delete a secret that is not needed any more");
  if (value.size() > SecretLimits::value_max)
    return fail(
        ErrorCode::invalid,
        fmt::format("the value has {} bytes, and {} is the most", value.size(), SecretLimits::value_max),
        "keep larger files in a datastore");
  return value;
}

std::string format_secret_request(std::string_view value) {
  if (is_utf8(value)) return dump(Json{{"value", value}});
  return dump(Json{{"base64", format_base64(value)}});
}

std::string format(const SecretRecord& secret) {
  Json json{{"name", secret.key.name}, {"scope", secret.key.user.empty() ? "workspace" : "user"}};
  json["user"] = secret.key.user.empty() ? Json() : Json(secret.key.user);
  json["author"] = secret.author;
  json["changed_at"] = format_time(secret.changed_at);
  return dump(json);
}

}  // namespace slipway::wire
