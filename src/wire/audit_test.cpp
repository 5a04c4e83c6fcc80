#include "wire/audit.h"

#include <gtest/gtest.h>

#include <vector>

namespace slipway::wire {
namespace {

AuditEntry entry(const std::string& user) {
  AuditEntry entry;
  entry.user = user;
  entry.method = "DELETE";
  entry.path = "/v1/jobs/\"job\n1";
  entry.status = 204;
  entry.is_allowed = true;
  entry.before = R"({"name":"a"})";
  return entry;
}

std::vector<std::string> lines(int count) {
  AuditChain chain;
  std::vector<std::string> all;
  for (int i = 0; i < count; ++i) {
    all.push_back(chain.append(entry("ana" + std::to_string(i))));
    EXPECT_EQ(all.back().find('\n'), all.back().size() - 1);
    all.back().pop_back();
  }
  return all;
}

int broken_at(const std::vector<std::string>& lines) {  // the first that does not follow, or -1
  AuditChain chain;
  for (std::size_t i = 0; i < lines.size(); ++i)
    if (!chain.follow(lines[i])) return static_cast<int>(i);
  return -1;
}

TEST(Audit, WhatIsChangedTakenOutOrPutInBreaksTheChain) {
  const std::vector<std::string> good = lines(5);
  EXPECT_EQ(broken_at(good), -1);
  for (std::size_t at = 0; at < good[2].size(); ++at) {
    std::vector<std::string> changed = good;
    changed[2][at] ^= 1;
    EXPECT_EQ(broken_at(changed), 2) << at;
  }
  std::vector<std::string> without = good;
  without.erase(without.begin() + 2);
  EXPECT_EQ(broken_at(without), 2);
  std::vector<std::string> twice = good;
  twice.insert(twice.begin() + 2, good[1]);
  EXPECT_EQ(broken_at(twice), 2);
  // One made anew, with the right hash of its own, is not the one that the next follows.
  AuditChain other;
  for (int i = 0; i < 2; ++i) (void)other.follow(good[static_cast<std::size_t>(i)]);
  std::vector<std::string> forged = good;
  forged[2] = other.append(entry("eve"));
  forged[2].pop_back();
  EXPECT_EQ(broken_at(forged), 3);
}

TEST(Audit, GoesOnAfterTheLastLine) {
  std::vector<std::string> all = lines(3);
  AuditChain chain;
  ASSERT_TRUE(chain.resume(all.back()));
  EXPECT_EQ(chain.count(), 3u);
  all.push_back(chain.append(entry("ben")));
  all.back().pop_back();
  EXPECT_EQ(broken_at(all), -1);
  EXPECT_FALSE(chain.resume(all.back().substr(1)));
  EXPECT_FALSE(chain.resume(""));
}

TEST(Audit, SecretsAreNotKept) {
  const std::string kept =
      audited(R"({"name":"a","token":"t0p","tasks":[{"secrets":{"KEY":"t0p"},"apiKey":"t0p"}],"size":3})");
  EXPECT_EQ(kept.find("t0p"), std::string::npos) << kept;
  EXPECT_NE(kept.find(R"("name":"a")"), std::string::npos) << kept;
  EXPECT_NE(kept.find(R"("size":3)"), std::string::npos) << kept;
  EXPECT_EQ(audited("no JSON"), "");
  EXPECT_EQ(audited("[" + std::string(10'000, ' ') + "]"), "");
}

}  // namespace
}  // namespace slipway::wire
