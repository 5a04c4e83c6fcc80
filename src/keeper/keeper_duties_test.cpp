// What an agent leaves with its keeper for the next one.
#include <gtest/gtest.h>

#include "keeper/keeper_fixture.h"

namespace slipway::keeper {
namespace {

using Duties = std::vector<DutyRecord>;

class KeeperDuties : public ::testing::Test {
 protected:
  TestKeeper keeper{TestKeeper::Groups::used};

  void end_one(std::uint32_t index, std::string duties) {
    StartRequest start = keeper.script(index, "exit 0");
    start.duties = std::move(duties);
    keeper.send(start);
    keeper.started();
    keeper.ended();
  }
  void reconnect() {
    keeper.disconnect();
    keeper.connect();
  }
  void replace() {
    keeper.kill();
    keeper.start();
  }
};

TEST_F(KeeperDuties, TheNextAgentFindsThem) {
  end_one(1, "push");
  keeper.send(DutyRecord{attempt(1), 1, "done"});
  reconnect();
  EXPECT_TRUE(keeper.list.keeps_duties);
  EXPECT_EQ(keeper.list.duties, (Duties{{attempt(1), 0, "push"}, {attempt(1), 1, "done"}}));
}

TEST_F(KeeperDuties, TheNextKeeperFindsThem) {
  end_one(1, "push");
  StartRequest running = keeper.script(2, "exec sleep 1000");
  running.duties = "unmount";
  keeper.send(running);
  keeper.started();
  replace();
  EXPECT_EQ(keeper.list.duties, (Duties{{attempt(1), 0, "push"}, {attempt(2), 0, "unmount"}}));
  ASSERT_EQ(keeper.list.ended.size(), 2u);
  EXPECT_EQ(keeper.list.ended[1].kind, ProcessEndKind::lost);
}

TEST_F(KeeperDuties, OfWorkThatNeverStartedStayToo) {
  keeper.send(DutyRecord{attempt(1), 0, "unmount"});
  reconnect();  // what a killed agent sent last counts
  EXPECT_EQ(keeper.list.duties, (Duties{{attempt(1), 0, "unmount"}}));
  end_one(1, "unmount and push");  // and do not keep it from starting
  replace();
  EXPECT_EQ(keeper.list.duties, (Duties{{attempt(1), 0, "unmount and push"}}));
}

TEST_F(KeeperDuties, AreForgottenWithTheirWork) {
  end_one(1, "push");
  keeper.send(DutyRecord{attempt(2), 0, "unmount"});
  keeper.send(ForgetRequest{{attempt(1), attempt(2), attempt(3)}});
  reconnect();
  EXPECT_TRUE(keeper.list.duties.empty());
  replace();
  EXPECT_TRUE(keeper.list.duties.empty());
  EXPECT_TRUE(keeper.list.ended.empty());
}

TEST_F(KeeperDuties, OfRunningWorkAreNotForgotten) {
  StartRequest running = keeper.script(1, "exec sleep 1000");
  running.duties = "push";
  keeper.send(running);
  keeper.started();
  keeper.send(ForgetRequest{{attempt(1)}});
  reconnect();
  EXPECT_EQ(keeper.list.duties.size(), 1u);
}

}  // namespace
}  // namespace slipway::keeper
