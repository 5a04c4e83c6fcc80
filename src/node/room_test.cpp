#include "node/room.h"

#include <gtest/gtest.h>

namespace slipway::node {
namespace {

AttemptKey key(std::uint32_t index) { return {{JobId(7), 0, index}, 1}; }
Resources cores(Millicores count) { return {.cores = count, .memory = 0, .gpus = 0}; }

TEST(RoomTest, FirstComeFirstServed) {
  Room room;
  room.take(key(1), cores(1000));
  room.take(key(2), cores(1000));
  room.wait(key(3), cores(2000), cores(2000));
  room.wait(key(4), cores(1000), cores(2000));
  EXPECT_EQ(room.next(), std::nullopt);
  EXPECT_FALSE(room.release(key(1)));
  EXPECT_EQ(room.next(), std::nullopt) << "4 would fit, but must not overtake 3";
  room.release(key(2));
  EXPECT_EQ(room.next(), key(3));
  EXPECT_EQ(room.next(), std::nullopt);
  EXPECT_EQ(room.waiting_keys(), std::vector{key(4)});
  room.release(key(3));
  EXPECT_EQ(room.next(), key(4));
  EXPECT_EQ(room.held(), cores(1000));
}

TEST(RoomTest, StartsAtOnceWhereThereIsRoom) {
  Room room;
  for (std::uint32_t i = 1; i <= 3; ++i) room.wait(key(i), cores(1000), cores(2000));
  EXPECT_EQ(room.next(), key(1));
  EXPECT_EQ(room.next(), key(2));
  EXPECT_EQ(room.next(), std::nullopt);
}

TEST(RoomTest, WhatDoesNotWaitIsNotRefused) {
  Room room;
  room.take(key(1), cores(2000));
  room.take(key(2), cores(2000));
  room.wait(key(3), cores(1000), cores(2000));
  room.release(key(1));
  EXPECT_EQ(room.next(), std::nullopt);
  room.release(key(2));
  EXPECT_EQ(room.next(), key(3));
}

TEST(RoomTest, LeavingTheQueue) {
  Room room;
  room.take(key(1), cores(1000));
  room.wait(key(2), cores(2000), cores(2000));
  room.wait(key(3), cores(1000), cores(2000));
  EXPECT_TRUE(room.release(key(2)));
  EXPECT_FALSE(room.release(key(2)));
  EXPECT_EQ(room.next(), key(3)) << "who waited behind it has its turn";
}

}  // namespace
}  // namespace slipway::node
