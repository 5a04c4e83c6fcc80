#include "keeper/capacity.h"

#include <gtest/gtest.h>

namespace slipway::keeper {
namespace {

WorkKey key(std::uint32_t index) { return AttemptKey{{JobId(7), 0, index}, 1}; }
Resources cores(Millicores count) { return {.cores = count, .memory = 0, .gpus = 0}; }

TEST(RoomTest, FirstComeFirstServed) {
  Capacity capacity;
  capacity.take(key(1), cores(1000));
  capacity.take(key(2), cores(1000));
  capacity.wait(key(3), cores(2000), cores(2000));
  capacity.wait(key(4), cores(1000), cores(2000));
  EXPECT_EQ(capacity.next(), std::nullopt);
  EXPECT_FALSE(capacity.release(key(1)));
  EXPECT_EQ(capacity.next(), std::nullopt) << "4 would fit, but must not overtake 3";
  capacity.release(key(2));
  EXPECT_EQ(capacity.next(), key(3));
  EXPECT_EQ(capacity.next(), std::nullopt);
  EXPECT_EQ(capacity.waiting_keys(), std::vector{key(4)});
  capacity.release(key(3));
  EXPECT_EQ(capacity.next(), key(4));
  EXPECT_EQ(capacity.held(), cores(1000));
}

TEST(RoomTest, StartsAtOnceWhereThereIsRoom) {
  Capacity capacity;
  for (std::uint32_t i = 1; i <= 3; ++i) capacity.wait(key(i), cores(1000), cores(2000));
  EXPECT_EQ(capacity.next(), key(1));
  EXPECT_EQ(capacity.next(), key(2));
  EXPECT_EQ(capacity.next(), std::nullopt);
}

TEST(RoomTest, WhatDoesNotWaitIsNotRefused) {
  Capacity capacity;
  capacity.take(key(1), cores(2000));
  capacity.take(key(2), cores(2000));
  capacity.wait(key(3), cores(1000), cores(2000));
  capacity.release(key(1));
  EXPECT_EQ(capacity.next(), std::nullopt);
  capacity.release(key(2));
  EXPECT_EQ(capacity.next(), key(3));
}

TEST(RoomTest, LeavingTheQueue) {
  Capacity capacity;
  capacity.take(key(1), cores(1000));
  capacity.wait(key(2), cores(2000), cores(2000));
  capacity.wait(key(3), cores(1000), cores(2000));
  EXPECT_TRUE(capacity.release(key(2)));
  EXPECT_FALSE(capacity.release(key(2)));
  EXPECT_EQ(capacity.next(), key(3)) << "what waited after it is next";
}

}  // namespace
}  // namespace slipway::keeper
