#include "domain/work_key.h"

#include <gtest/gtest.h>

namespace slipway {
namespace {

TEST(WorkKey, EveryKindSurvivesPacking) {
  const AttemptKey attempt{{JobId{4}, 1, 2}, 3};
  const WorkKey keys[] = {attempt, PreparationRun{attempt}, StartTaskRun{NodeId{7}, 2}};
  for (const WorkKey& key : keys) {
    SCOPED_TRACE(to_string(key));
    EXPECT_EQ(unpack(pack(key)), key);
    EXPECT_EQ(parse_work_key(to_string(key)), key);
  }
  EXPECT_NE(pack(keys[0]), pack(keys[1]));
}

TEST(WorkKey, NamesTheAttemptItBelongsTo) {
  const AttemptKey attempt{{JobId{4}, 1, 2}, 3};
  EXPECT_EQ(*attempt_of(attempt), attempt);
  EXPECT_EQ(*attempt_of(PreparationRun{attempt}), attempt);
  EXPECT_EQ(attempt_of(StartTaskRun{NodeId{7}, 2}), nullptr);
}

}  // namespace
}  // namespace slipway
