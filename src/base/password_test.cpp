#include "base/password.h"

#include <gtest/gtest.h>

namespace slipway {
namespace {

TEST(Password, IsFoundRightByItsHashAlone) {
  const auto hash = hash_password("correct horse");
  ASSERT_TRUE(hash) << hash.error().what;
  EXPECT_TRUE(hash->starts_with("$argon2id$v=19$m=19456,t=2,p=1$")) << *hash;
  EXPECT_TRUE(is_password("correct horse", *hash));
  EXPECT_FALSE(is_password("correct horsf", *hash));
  EXPECT_FALSE(is_password("", *hash));
  EXPECT_FALSE(is_password("correct horse", ""));
  EXPECT_FALSE(is_password("correct horse", "$argon2id$broken"));
}

TEST(Password, TwoHashesOfOneAreNotTheSame) {
  EXPECT_NE(hash_password("correct horse").value(), hash_password("correct horse").value());
}

TEST(Password, ShortAndEndlessOnesAreRefused) {
  EXPECT_FALSE(hash_password("1234567"));
  EXPECT_FALSE(hash_password(std::string(password_size_max + 1, 'x')));
  EXPECT_TRUE(hash_password(std::string(password_size_max, 'x')));
}

// The vector of the reference implementation: another library's hashes are read, too.
TEST(Password, ReadsWhatOthersHaveHashed) {
  EXPECT_TRUE(is_password(
      "password", "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc"));
}

}  // namespace
}  // namespace slipway
