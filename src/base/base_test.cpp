#include <gtest/gtest.h>

#include <filesystem>

#include "base/clock.h"
#include "base/encoding.h"
#include "base/file.h"
#include "base/hmac.h"
#include "base/md5.h"
#include "base/quantity.h"
#include "base/random.h"
#include "base/seal.h"
#include "base/sha256.h"
#include "base/suggest.h"

namespace slipway {
namespace {

TEST(Quantity, ParsesBytes) {
  struct Row {
    const char* text;
    Bytes bytes;
  };
  for (const Row& row : {Row{"0", 0}, Row{"512", 512}, Row{"256MiB", 256u << 20}, Row{"2GiB", 2ull << 30},
                         Row{"1.5 GiB", 3ull << 29}, Row{"10KB", 10'000}, Row{"4G", 4ull << 30}}) {
    SCOPED_TRACE(row.text);
    EXPECT_EQ(parse_bytes(row.text).value(), row.bytes);
  }
  for (const char* wrong : {"", "-1", "MiB", "1 parsec", "1MiB2", "1e30", "99999999TiB"}) {
    SCOPED_TRACE(wrong);
    EXPECT_FALSE(parse_bytes(wrong));
  }
}

TEST(Quantity, ParsesDurations) {
  struct Row {
    const char* text;
    Duration duration;
  };
  for (const Row& row :
       {Row{"10m", 10min}, Row{"1h30m", 90min}, Row{"500ms", 500ms}, Row{"2", 2s}, Row{"0.5s", 500ms}}) {
    SCOPED_TRACE(row.text);
    EXPECT_EQ(parse_duration(row.text).value(), row.duration);
  }
  for (const char* wrong : {"", "-3s", "m", "3 weeks", "1s2", "1e99d"}) {
    SCOPED_TRACE(wrong);
    EXPECT_FALSE(parse_duration(wrong));
  }
}

TEST(Quantity, FormatsForPeople) {
  EXPECT_EQ(format_bytes(2048), "2 KiB");
  EXPECT_EQ(format_bytes(1536), "1.5 KiB");
  EXPECT_EQ(format_duration(350ms), "350 ms");
  EXPECT_EQ(format_duration(200s), "3 min 20 s");
  EXPECT_EQ(format_duration(2h + 5min), "2 h 5 min");
}

Duration fake_boot_time{};  // of a machine that can sleep

TEST(Clock, TimeAsleepCounts) {
  fake_boot_time = std::chrono::hours(3);
  const SystemClock clock([] { return fake_boot_time; });
  const TimePoint before = clock.now();
  const Duration before_sleep = clock.as_boot_time(before);
  EXPECT_EQ(before_sleep, std::chrono::hours(3));
  fake_boot_time += std::chrono::seconds(60);
  EXPECT_EQ(clock.now() - before, std::chrono::seconds(60));
  EXPECT_EQ(clock.as_boot_time(before), before_sleep) << "what was sent then does not become younger";
}

TEST(Clock, TimesRoundTrip) {
  const TimePoint time{Duration(1'772'445'600'123'456)};
  EXPECT_EQ(format_time(time), "2026-03-02T10:00:00.123456Z");
  EXPECT_EQ(parse_time(format_time(time)).value(), time);
  EXPECT_FALSE(parse_time("yesterday"));
  EXPECT_FALSE(parse_time("2026-03-02T10:00:00"));
}

TEST(Random, SameSeedSameNumbers) {
  Random a(7), b(7), c(8);
  EXPECT_EQ(a.next(), b.next());
  EXPECT_NE(a.next(), c.next());
  for (int i = 0; i < 1000; ++i) {
    const std::int64_t n = a.between(-3, 3);
    EXPECT_GE(n, -3);
    EXPECT_LE(n, 3);
  }
}

TEST(Sha256, KnownAnswer) {
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_TRUE(is_sha256_hex(sha256_hex("")));
  EXPECT_FALSE(is_sha256_hex("../../etc/passwd"));
}

TEST(Suggest, FindsTypos) {
  const std::vector<std::string> keys{"name", "command", "environment", "retries"};
  EXPECT_EQ(nearest("comand", keys), "command");
  EXPECT_EQ(nearest("nmae", keys), "name");
  EXPECT_EQ(nearest("zebra", keys), "");
}

TEST(Seal, OnlyTheSameKeyOpensIt) {
  const Sealer sealer = Sealer::for_now();
  for (const std::string& clear : {std::string(), std::string("s3cret"), std::string(100'000, '\0')}) {
    const std::string sealed = sealer.seal(clear, "KEY");
    EXPECT_TRUE(is_sealed(sealed));
    EXPECT_EQ(sealed.find("s3cret"), std::string::npos);
    EXPECT_EQ(sealer.unseal(sealed, "KEY").value(), clear);
    EXPECT_FALSE(sealer.unseal(sealed, "PATH")) << "it is for something else";
    EXPECT_FALSE(sealer.unseal(sealed, ""));
    EXPECT_NE(sealer.seal(clear, "KEY"), sealed);
    EXPECT_FALSE(Sealer::for_now().unseal(sealed, "KEY"));
    std::string changed = sealed;
    changed[changed.size() / 2] = changed[changed.size() / 2] == 'A' ? 'B' : 'A';
    EXPECT_FALSE(sealer.unseal(changed, "KEY"));
  }
  for (const char* wrong :
       {"", "s3cret", "sealed:", "sealed:AAAA", "sealed:?", "sealed:AAA", "sealed:1:AAAA"})
    EXPECT_FALSE(sealer.unseal(wrong, "KEY")) << wrong;
}

TEST(Seal, Low_OneKeySealsAndSigns) {
  char folder[] = "/tmp/slipway-seal-XXXXXX";
  ASSERT_NE(::mkdtemp(folder), nullptr);
  const std::string file = std::string(folder) + "/secret.key";
  // As it was before keys were derived: what was written then is opened now.
  ASSERT_TRUE(write_file(file, std::string(32, 'k')));
  EXPECT_EQ(
      Sealer::open(file)->unseal("sealed:bm9uY2UtMTItYml0HCdNJvcTAVfZeK9rGBxHMifbOL+dwg==", "KEY").value(),
      "s3cret");
  const auto first = Sealer::open(file);
  ASSERT_TRUE(first);
  const std::string sealed = first->seal("s3cret", "KEY"), signature = first->sign("text");
  EXPECT_TRUE(first->is_signature(signature, "text"));
  EXPECT_FALSE(first->is_signature(signature, "another"));
  EXPECT_NE(signature, format_hex(hmac_sha256(std::string(32, 'k'), "slipway signature:text")))
      << "signed with the key that seals";
  EXPECT_TRUE(
      first->is_signature(format_hex(hmac_sha256(std::string(32, 'k'), "slipway signature:text")), "text"))
      << "links of an earlier version still lead somewhere";

  ASSERT_TRUE(Sealer::rotate(file));
  const auto second = Sealer::open(file);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->unseal(sealed, "KEY").value(), "s3cret");
  EXPECT_TRUE(second->is_signature(signature, "text"));
  EXPECT_FALSE(first->unseal(second->seal("s3cret", "KEY"), "KEY")) << "the old key is still used";
  EXPECT_NE(second->sign("text"), signature);
  std::filesystem::remove_all(folder);
}

TEST(Seal, KeysComeFromAFileATextOrAPassphrase) {
  char folder[] = "/tmp/slipway-keys-XXXXXX";
  ASSERT_NE(::mkdtemp(folder), nullptr);
  const std::string at = folder;
  const std::string one(64, 'a'), two = format_base64(std::string(32, 'k'));
  const auto open = [&](const std::string& given, const std::string& passphrases) {
    return Sealer::open(SealingKeys{at + "/secret.key", given, passphrases, at + "/secret.salt"});
  };
  const std::string sealed = open(one, "").value().seal("s3cret", "KEY");
  EXPECT_FALSE(std::filesystem::exists(at + "/secret.key")) << "no key of its own is needed";
  EXPECT_EQ(open(one, "").value().unseal(sealed, "KEY").value(), "s3cret");
  EXPECT_FALSE(open(two, "").value().unseal(sealed, "KEY"));
  const Sealer both = open(one + "," + two, "").value();
  EXPECT_EQ(both.unseal(sealed, "KEY").value(), "s3cret");
  EXPECT_FALSE(both.is_current(sealed)) << "the last one is used";
  EXPECT_TRUE(both.is_current(both.seal("s3cret", "KEY")));
  EXPECT_FALSE(both.is_current("s3cret"));

  const std::string by_phrase = open("", "correct horse battery\n").value().seal("s3cret", "KEY");
  EXPECT_EQ(open("", "correct horse battery").value().unseal(by_phrase, "KEY").value(), "s3cret");
  EXPECT_FALSE(open("", "correct horse staples").value().unseal(by_phrase, "KEY"));
  EXPECT_EQ(open("", "correct horse battery\nanother phrase\n").value().unseal(by_phrase, "KEY").value(),
            "s3cret");
  std::filesystem::remove(at + "/secret.salt");
  EXPECT_FALSE(open("", "correct horse battery").value().unseal(by_phrase, "KEY")) << "another salt";

  ASSERT_TRUE(open("", ""));
  EXPECT_TRUE(std::filesystem::exists(at + "/secret.key"));
  const std::string by_file = open("", "").value().seal("s3cret", "KEY");
  EXPECT_EQ(open(one, "").value().unseal(by_file, "KEY").value(), "s3cret") << "from a file to a text";
  for (const std::string& wrong :
       {std::string(63, 'a'), std::string(64, 'x'), std::string("c2hvcnQ="), std::string("?")})
    EXPECT_FALSE(open(wrong, "")) << wrong;
  EXPECT_FALSE(open("", "short"));
  std::filesystem::remove_all(folder);
}

TEST(Encoding, Hexadecimal) {
  EXPECT_EQ(parse_hex("00ffAb"), std::string("\0\xff\xab", 3));
  EXPECT_EQ(parse_hex(""), "");
  for (const char* wrong : {"0", "0g", "g0", "-1"}) EXPECT_FALSE(parse_hex(wrong)) << wrong;
}

TEST(Encoding, Base64) {  // RFC 4648, section 10
  struct Row {
    const char* bytes;
    const char* text;
  };
  for (const Row& row : {Row{"", ""}, Row{"f", "Zg=="}, Row{"fo", "Zm8="}, Row{"foo", "Zm9v"},
                         Row{"foob", "Zm9vYg=="}, Row{"fooba", "Zm9vYmE="}, Row{"foobar", "Zm9vYmFy"}}) {
    EXPECT_EQ(format_base64(row.bytes), row.text);
    EXPECT_EQ(parse_base64(row.text), row.bytes);
  }
  EXPECT_EQ(format_base64(std::string("\xff\0\xfe", 3)), "/wD+");
  for (const char* wrong : {"Z", "Zg", "Zg=", "Zh==", "Zm9=", "Zg==Zg==", "Z===", "====", "Zm 8", "Zm8\n"})
    EXPECT_FALSE(parse_base64(wrong)) << wrong;
}

TEST(Hashes, HmacAndMd5) {  // RFC 4231, case 2; RFC 1321
  EXPECT_EQ(format_hex(hmac_sha256("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(format_hex(hmac_sha256("", "")),
            "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
  Md5 hash;
  hash.add("message ");
  hash.add("digest");
  EXPECT_EQ(format_hex(hash.finish()), "f96b697d7cb7938d525a2f31aaf161d0");
}

}  // namespace
}  // namespace slipway
