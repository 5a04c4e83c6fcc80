#include "domain/secret.h"

#include <fmt/format.h>

namespace slipway {

std::string secret_purpose(const SecretKey& key) {
  return fmt::format("secret {}/{}/{}", key.workspace, key.user, key.name);
}

std::string describe(const SecretKey& key) {
  return fmt::format("secret {} of {}", key.name, key.user.empty() ? "workspace " + key.workspace : key.user);
}

}  // namespace slipway
