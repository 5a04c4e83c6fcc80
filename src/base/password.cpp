#include "base/password.h"

#include <argon2.h>
#include <fmt/format.h>
#include <sys/random.h>

#include <array>
#include <cerrno>

#include "base/file.h"

namespace slipway {
namespace {

constexpr std::uint32_t passes = 2, memory_kib = 19 * 1024, lanes = 1;
constexpr std::size_t salt_size = 16, hash_size = 32;

}  // namespace

Result<std::string> hash_password(std::string_view password) {
  if (password.size() < password_size_min || password.size() > password_size_max)
    return fail(ErrorCode::invalid,
                fmt::format("a password has {} to {} characters", password_size_min, password_size_max),
                "choose a longer one");
  std::array<unsigned char, salt_size> salt{};
  if (::getrandom(salt.data(), salt.size(), 0) != static_cast<ssize_t>(salt.size()))
    return fail(system_error("cannot get random bytes", errno));
  std::array<char, 256> encoded{};
  const int done =
      ::argon2id_hash_encoded(passes, memory_kib, lanes, password.data(), password.size(), salt.data(),
                              salt.size(), hash_size, encoded.data(), encoded.size());
  if (done != ARGON2_OK)
    return fail(ErrorCode::unavailable,
                fmt::format("the password cannot be hashed: {}", ::argon2_error_message(done)),
                "try again later");
  return std::string(encoded.data());
}

bool is_password(std::string_view password, const std::string& hash) {
  if (hash.empty()) {
    // Nothing is compared; the time is spent.
    static_cast<void>(hash_password("no password at all"));
    return false;
  }
  return password.size() <= password_size_max &&
         ::argon2id_verify(hash.c_str(), password.data(), password.size()) == ARGON2_OK;
}

}  // namespace slipway
