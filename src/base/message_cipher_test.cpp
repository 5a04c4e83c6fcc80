#include "base/message_cipher.h"

#include <gtest/gtest.h>

namespace slipway {
namespace {

TEST(MessageCipher, OpensWhatWasSealedInOrder) {
  const std::string key(32, 'k');
  MessageCipher to(key);
  MessageCipher from(key);
  for (const std::string& clear : {std::string(), std::string("a"), std::string(100'000, 'x')}) {
    const std::string sealed = to.seal(5, clear);
    EXPECT_EQ(sealed.size(), clear.size() + MessageCipher::overhead);
    EXPECT_EQ(sealed.find("xxxx"), std::string::npos);
    EXPECT_EQ(from.open(5, sealed).value(), clear);
  }
}

TEST(MessageCipher, RefusesWhatWasChangedRepeatedOrMoved) {
  const std::string key(32, 'k');
  const auto opens = [&](auto change) {
    MessageCipher to(key);
    MessageCipher from(key);
    std::string first = to.seal(1, "first");
    std::string second = to.seal(1, "second");
    return change(from, first, second);
  };
  EXPECT_TRUE(opens([](auto& from, auto& first, auto& second) {
    return from.open(1, first).has_value() && from.open(1, second).has_value();
  }));
  EXPECT_FALSE(opens([](auto& from, auto&, auto& second) { return from.open(1, second).has_value(); }));
  EXPECT_FALSE(opens([](auto& from, auto& first, auto&) {
    return from.open(1, first).has_value() && from.open(1, first).has_value();
  }));
  EXPECT_FALSE(opens([](auto& from, auto& first, auto&) { return from.open(2, first).has_value(); }));
  EXPECT_FALSE(opens([](auto& from, auto&, auto&) { return from.open(1, "").has_value(); }));
  for (std::size_t at = 0; at < 5 + MessageCipher::overhead; ++at)
    EXPECT_FALSE(opens([at](auto& from, auto& first, auto&) {
      first[at] = static_cast<char>(first[at] ^ 1);
      return from.open(1, first).has_value();
    })) << at;
  MessageCipher other(std::string(32, 'o'));
  EXPECT_FALSE(other.open(1, MessageCipher(key).seal(1, "x")));
}

}  // namespace
}  // namespace slipway
