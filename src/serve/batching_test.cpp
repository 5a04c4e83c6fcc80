#include "serve/batching.h"

#include <gtest/gtest.h>

#include <random>

namespace slipway::serve {
namespace {

TimePoint at(std::int64_t milliseconds) { return TimePoint(std::chrono::milliseconds(milliseconds)); }

std::vector<BatchTaskId> ids(const std::optional<Batch>& batch) {
  std::vector<BatchTaskId> all;
  if (batch)
    for (const BatchTask& task : batch->tasks) all.push_back(task.id);
  return all;
}
using Ids = std::vector<BatchTaskId>;

TEST(BatchQueues, ATaskThatDoesNotFitClosesTheBatch) {
  BatchQueues queues({.max_batch_size = 4, .timeout = 10ms});
  for (const BatchTask task : {BatchTask{1, 1}, BatchTask{2, 2}, BatchTask{3, 2}})
    ASSERT_TRUE(queues.enqueue("m", task, at(0)));
  const auto first = queues.take(at(0));
  EXPECT_EQ(ids(first), (Ids{1, 2}));
  EXPECT_EQ(first->rows, 3);
  EXPECT_EQ(queues.take(at(9)), std::nullopt);
  EXPECT_EQ(queues.ready_at(), at(10));
  EXPECT_EQ(ids(queues.take(at(10))), (Ids{3}));
  EXPECT_EQ(queues.ready_at(), std::nullopt);
}

TEST(BatchQueues, AllowedSizesPadUpwards) {
  const BatchingParameters parameters{.max_batch_size = 4, .allowed_batch_sizes = {2, 4}};
  EXPECT_EQ(padded_size(parameters, 1), 2);
  EXPECT_EQ(padded_size(parameters, 2), 2);
  EXPECT_EQ(padded_size(parameters, 3), 4);
  EXPECT_EQ(padded_size({}, 3), 3);
}

TEST(BatchQueues, WithoutATimeOutWhateverWaitsIsTaken) {
  BatchQueues queues({.max_batch_size = 8});
  ASSERT_TRUE(queues.enqueue("m", {1, 2}, at(0)));
  ASSERT_TRUE(queues.enqueue("m", {2, 3}, at(0)));
  EXPECT_EQ(ids(queues.take(at(0))), (Ids{1, 2}));
}

TEST(BatchQueues, AFullQueueRefusesAndAFullBatchGoesAtOnce) {
  BatchQueues queues({.max_batch_size = 2, .timeout = 1s, .max_enqueued_batches = 2});
  ASSERT_TRUE(queues.enqueue("m", {1, 2}, at(0)));
  ASSERT_TRUE(queues.enqueue("m", {2, 1}, at(0)));
  EXPECT_EQ(queues.enqueue("m", {3, 2}, at(0)).error().code, Code::unavailable);
  ASSERT_TRUE(queues.enqueue("m", {4, 1}, at(0))) << "it fits the open batch";
  ASSERT_TRUE(queues.enqueue("n", {5, 1}, at(0))) << "each queue has its own bound";
  EXPECT_EQ(ids(queues.take(at(0))), (Ids{1}));
  EXPECT_EQ(ids(queues.take(at(0))), (Ids{2, 4}));
  EXPECT_EQ(queues.take(at(0)), std::nullopt);
}

TEST(BatchQueues, QueuesTakeTurns) {
  BatchQueues queues({.max_batch_size = 1, .max_enqueued_batches = 9});
  for (BatchTaskId id = 1; id <= 3; ++id) {
    ASSERT_TRUE(queues.enqueue("a", {id, 1}, at(0)));
    ASSERT_TRUE(queues.enqueue("b", {id + 10, 1}, at(0)));
  }
  Ids order;
  while (const auto batch = queues.take(at(0))) order.push_back(batch->tasks.front().id);
  EXPECT_EQ(order, (Ids{1, 11, 2, 12, 3, 13}));
}

TEST(BatchQueues, LargeTasksAreRefusedOrSplit) {
  BatchQueues whole({.max_batch_size = 4});
  EXPECT_EQ(whole.enqueue("m", {1, 5}, at(0)).error().code, Code::invalid_argument);
  BatchQueues split({.max_batch_size = 100, .splits_large_batches = true, .max_execution_batch_size = 4});
  ASSERT_TRUE(split.enqueue("m", {1, 3}, at(0)));
  ASSERT_TRUE(split.enqueue("m", {2, 6}, at(0)));
  EXPECT_EQ(split.take(at(0))->tasks, (std::vector<BatchTask>{{1, 3}, {2, 1}}));
  EXPECT_EQ(split.take(at(0))->tasks, (std::vector<BatchTask>{{2, 4}}));
  EXPECT_EQ(split.take(at(0))->tasks, (std::vector<BatchTask>{{2, 1}}));
}

TEST(BatchQueues, NothingIsLostOrRunTwice) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](unsigned n) { return std::uniform_int_distribution<unsigned>(0, n - 1)(random); };
    BatchingParameters parameters{.max_batch_size = 8, .timeout = 5ms, .max_enqueued_batches = 3};
    parameters.splits_large_batches = seed % 2 == 0;
    if (parameters.splits_large_batches) parameters.max_execution_batch_size = 3;
    BatchQueues queues(parameters);
    std::map<BatchTaskId, std::int64_t> waiting;
    std::int64_t now = 0;
    const auto drain = [&](TimePoint until) {
      while (const auto batch = queues.take(until)) {
        std::int64_t rows = 0;
        for (const BatchTask& task : batch->tasks) {
          rows += task.rows;
          waiting.at(task.id) -= task.rows;
          ASSERT_GE(waiting.at(task.id), 0) << seed;
        }
        ASSERT_EQ(rows, batch->rows);
        ASSERT_LE(rows, parameters.execution_size_max());
      }
    };
    for (BatchTaskId id = 1; id < 300; ++id) {
      const auto rows = static_cast<std::int64_t>(below(9));
      const std::string queue(1, static_cast<char>('a' + below(3)));
      if (queues.enqueue(queue, {id, rows}, at(now))) waiting[id] = rows;
      now += below(4);
      if (below(3) == 0) drain(at(now));
      ASSERT_LE(queues.waiting_batches(), 9u);
    }
    drain(at(now + 1000));
    for (const auto& [id, rows] : waiting) ASSERT_EQ(rows, 0) << "task " << id << " seed " << seed;
  }
}

}  // namespace
}  // namespace slipway::serve
