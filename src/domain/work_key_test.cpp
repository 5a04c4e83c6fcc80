#include "domain/work_key.h"

#include <gtest/gtest.h>

namespace slipway {
namespace {

TEST(WorkKey, EveryKindSurvivesPacking) {
  const AttemptKey attempt{{JobId{4}, 1, 2}, 3};
  const StartTaskRun start{NodeId{7}, 2};
  const WorkKey keys[] = {attempt,          PreparationRun{attempt},          start,
                          PushRun{attempt}, PushRun{PreparationRun{attempt}}, PushRun{start}};
  for (const WorkKey& key : keys) {
    SCOPED_TRACE(to_string(key));
    EXPECT_EQ(unpack(pack(key)), key);
    EXPECT_EQ(parse_work_key(to_string(key)), key);
  }
  EXPECT_NE(pack(keys[0]), pack(keys[1]));
  EXPECT_EQ(pack(PushRun{start}), (AttemptKey{{JobId{0}, 7, 0}, 2 | 1u << 30}))
      << "as other versions read it";
}

TEST(WorkKey, APushNamesItsWork) {
  const WorkKey work = StartTaskRun{NodeId{7}, 2};
  EXPECT_EQ(work_of(push_of(work)), work);
  EXPECT_EQ(push_of(push_of(work)), push_of(work));
}

TEST(WorkKey, NamesTheAttemptItBelongsTo) {
  const AttemptKey attempt{{JobId{4}, 1, 2}, 3};
  EXPECT_EQ(*attempt_of(attempt), attempt);
  EXPECT_EQ(*attempt_of(PreparationRun{attempt}), attempt);
  EXPECT_EQ(attempt_of(StartTaskRun{NodeId{7}, 2}), nullptr);
}

}  // namespace
}  // namespace slipway
