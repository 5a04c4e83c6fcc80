// Secrets by name: who sets them, which one a job means, and when a new value is used.
#include "control/secrets.h"

#include <gtest/gtest.h>

#include "control/testing.h"

namespace slipway::control {
namespace {

const Caller ana{"ana", "default", Role::member}, ben{"ben", "default", Role::member},
    admin{"root", "default", Role::admin};

SecretKey of(const std::string& user, const std::string& name = "hub") { return {"default", user, name}; }

TaskSpec using_secret(const std::string& name = "hub") {
  TaskSpec task = one_node();
  task.secret_refs["TOKEN"] = {name, false};
  return task;
}

TEST(Secrets, AreSetByTheirUserAndThoseOfTheWorkspaceByAdmins) {
  struct Row {
    const char* rule;
    Caller caller;
    SecretKey key;
    bool may;
  };
  const Row rows[] = {{"one's own", ana, of("ana"), true},
                      {"of another", ben, of("ana"), false},
                      {"of another, by an admin", admin, of("ana"), true},
                      {"of the workspace, by a member", ana, of(""), false},
                      {"of the workspace, by an admin", admin, of(""), true}};
  for (const Row& row : rows) {
    SCOPED_TRACE(row.rule);
    Bench bench;
    EXPECT_EQ(set_secret(bench.turn, row.caller, row.key, "sealed:1").has_value(), row.may);
    ASSERT_TRUE(set_secret(bench.turn, admin, row.key, "sealed:2"));
    EXPECT_EQ(delete_secret(bench.turn, row.caller, row.key).has_value(), row.may);
    EXPECT_EQ(bench.state.secrets.contains(row.key), !row.may);
  }
}

TEST(Secrets, AJobMeansItsUsersBeforeThatOfTheWorkspaceAndNobodyElses) {
  Bench bench;
  ASSERT_TRUE(set_secret(bench.turn, admin, of(""), "sealed:shared"));
  ASSERT_TRUE(set_secret(bench.turn, ana, of("ana"), "sealed:of-ana"));
  ASSERT_TRUE(set_secret(bench.turn, ana, of("ana", "only"), "sealed:only"));
  EXPECT_EQ(find_secret(bench.state, "default", "ana", "hub")->sealed, "sealed:of-ana");
  EXPECT_EQ(find_secret(bench.state, "default", "ben", "hub")->sealed, "sealed:shared");
  EXPECT_EQ(find_secret(bench.state, "default", "ben", "only"), nullptr);
  EXPECT_EQ(find_secret(bench.state, "other", "ana", "hub"), nullptr);
}

TEST(Secrets, UnknownOnesAreRefusedAtSubmit) {
  Bench bench;
  bench.pool();
  ASSERT_TRUE(set_secret(bench.turn, ana, of("ana"), "sealed:of-ana"));
  JobSpec spec;
  spec.pool = "lab";
  spec.is_patient = true;
  spec.tasks = {using_secret()};
  EXPECT_TRUE(on_submit(bench.turn, ana, spec, ""));
  const auto refused = on_submit(bench.turn, ben, spec, "");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().what,
            "task train asks for secret hub in TOKEN, and neither ben nor workspace default has one");
  EXPECT_EQ(refused.error().hint, "slipway secret set hub");
}

std::string given_to(const Effects& effects) {
  for (const auto& [node, orders] : effects.orders)
    for (const StartOrder& order : orders.start)
      for (const GivenSecret& secret : order.processes.front().given) return secret.sealed;
  return "nothing";
}

TEST(Secrets, ANewValueIsUsedByTheNextAttempt) {
  Bench bench;
  bench.pool();
  bench.join("n1");
  ASSERT_TRUE(set_secret(bench.turn, bench.user, of("ana"), "sealed:1"));
  TaskSpec task = using_secret();
  task.retries = 1;
  const JobId id = bench.submit({task});
  EXPECT_EQ(given_to(bench.finish()), "sealed:1");
  ASSERT_TRUE(set_secret(bench.turn, bench.user, of("ana"), "sealed:2"));
  EXPECT_EQ(bench.state.secrets.at(of("ana")).earlier, (std::vector<std::string>{"sealed:1"}));
  const AttemptKey first = bench.attempt(id)->record.key;
  bench.started("n1", first);
  EXPECT_EQ(given_to(bench.finish()), "nothing") << "what runs keeps what it has";
  bench.ended("n1", first, 0, 1);
  bench.finish();
  EXPECT_EQ(given_to(bench.pass(10s)), "sealed:2");
}

TEST(Secrets, OneThatWasDeletedIsGivenWithoutAValue) {
  Bench bench;
  bench.pool();
  ASSERT_TRUE(set_secret(bench.turn, bench.user, of("ana"), "sealed:1"));
  bench.submit({using_secret()});
  bench.finish();
  ASSERT_TRUE(delete_secret(bench.turn, bench.user, of("ana")));
  bench.join("n1");
  EXPECT_EQ(given_to(bench.finish()), "");
}

TEST(Secrets, AsManyAsTheLimitAllows) {
  Bench bench;
  for (std::size_t i = 0; i < SecretLimits::names_max; ++i)
    ASSERT_TRUE(set_secret(bench.turn, ana, of("ana", "s" + std::to_string(i)), "sealed:1"));
  EXPECT_FALSE(set_secret(bench.turn, ana, of("ana", "one-more"), "sealed:1"));
  EXPECT_TRUE(set_secret(bench.turn, ana, of("ana", "s0"), "sealed:2"));
  EXPECT_TRUE(set_secret(bench.turn, ben, of("ben"), "sealed:1"));
  for (std::size_t i = 0; i < 2 * SecretLimits::earlier_max; ++i)
    ASSERT_TRUE(set_secret(bench.turn, ana, of("ana", "s0"), "sealed:" + std::to_string(i)));
  EXPECT_EQ(bench.state.secrets.at(of("ana", "s0")).earlier.size(), SecretLimits::earlier_max);
}

}  // namespace
}  // namespace slipway::control
