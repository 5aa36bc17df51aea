#include "experts/expert_store.h"

#include <gtest/gtest.h>

#include "experts/streamed_test.h"

namespace sluice {
namespace {

TEST(ExpertStore, MissThenJoinThenHit) {
  Streamed test;
  ExpertStore& store = test.store();
  const ExpertLease miss = store.acquire({0, 3}, 1);
  ASSERT_TRUE(miss);
  EXPECT_FALSE(store.is_resident({0, 3}));
  EXPECT_TRUE(test.drive().log().empty()) << "reads start with the next pump";
  const ExpertLease join = store.acquire({0, 3}, 1);
  ASSERT_TRUE(join);
  const ExpertLease lease = test.load({0, 3});
  EXPECT_TRUE(store.is_resident({0, 3}));
  EXPECT_TRUE(test.has_bytes(lease, {0, 3}));
  EXPECT_TRUE(store.acquire({0, 3}, 1));
  EXPECT_EQ(test.drive().log().size(), 3u) << "a read for each part, once";
  const ExpertStats stats = store.stats();
  EXPECT_EQ(stats.lookup_count, 4u);
  EXPECT_EQ(stats.miss_count, 1u);
  EXPECT_EQ(stats.join_count, 2u);
  EXPECT_EQ(stats.hit_count, 1u);
  EXPECT_EQ(stats.demand_read_count, 3u);
  EXPECT_EQ(stats.demand_bytes, 96u * (31 + 31 + 43));
  test.check_at_rest();
}

TEST(ExpertStore, EveryExpertHasItsBytes) {
  Streamed test;
  for (uint32_t layer = 0; layer < 3; ++layer)
    for (uint32_t index = 0; index < kExperts; ++index) {
      const ExpertLease lease = test.load({layer, index});
      EXPECT_TRUE(test.has_bytes(lease, {layer, index})) << layer << ' ' << index;
    }
  EXPECT_EQ(test.store().stats().miss_count, 3u * kExperts);
  EXPECT_EQ(test.store().stats().eviction_count, 3u * kExperts - (4 + 4 + 2));
  EXPECT_EQ(test.store().stats().demand_read_count, kExperts * (3u + 2 + 3));
  test.check_at_rest();
}

TEST(ExpertStore, GateAndUpAreReadyBeforeDown) {
  Streamed test({.drive = {.planned = {{2, FakeFault::delayed}}}});
  const ExpertLease lease = test.store().acquire({0, 0}, 1);
  const ExpertLayout& layout = test.layout(0);
  while (!lease.ready(layout.gate_up_parts())) test.store().wait();
  EXPECT_FALSE(lease.ready(layout.down_parts()));
  EXPECT_FALSE(test.store().is_resident({0, 0}));
  test.store().wait();
  EXPECT_TRUE(lease.ready(layout.all_parts()));
}

/// What has landed while we computed is there at once; we do not wait for another read as well.
TEST(ExpertStore, WaitingEndsWithWhatHasLanded) {
  Streamed test(
      {.drive = {.seed = 2, .delay_max_ns = 50'000'000, .planned = {{3, FakeFault::delayed}}}});
  const ExpertLease quick = test.store().acquire({0, 0}, 1);
  const ExpertLease slow = test.store().acquire({1, 0}, 1);
  test.store().pump();
  test.drive().advance(400'000);
  ASSERT_GT(test.drive().log()[3].finished_ns, 5'000'000u);
  const uint64_t now = test.drive().now_ns();
  while (!test.is_ready(quick, {0, 0})) test.store().wait();
  EXPECT_LE(test.drive().now_ns(), now + 2'000) << "a look or two";
  EXPECT_FALSE(test.is_ready(slow, {1, 0}));
}

TEST(ExpertStore, WithoutASlotThereIsNoLease) {
  Streamed test;
  ExpertStore& store = test.store();
  ExpertLease first = test.load({2, 0});
  const ExpertLease second = test.load({2, 1});
  EXPECT_FALSE(store.acquire({2, 5}, 1));
  EXPECT_EQ(store.stats().lookup_count, 2u) << "a lookup counts when it succeeds";
  first = {};
  const ExpertLease third = test.load({2, 5});
  ASSERT_TRUE(third);
  EXPECT_TRUE(test.has_bytes(second, {2, 1}));
  EXPECT_TRUE(test.has_bytes(third, {2, 5}));
  EXPECT_FALSE(store.is_resident({2, 0}));
  test.check_at_rest();
}

TEST(ExpertStore, WithoutRoomForRequestsThereIsNoLeaseEither) {
  Streamed test({.queue = {.request_count_max = 5}});
  const ExpertLease first = test.store().acquire({0, 0}, 1);
  EXPECT_TRUE(first);
  EXPECT_FALSE(test.store().acquire({0, 1}, 1));
  test.store().wait();
  EXPECT_TRUE(test.store().acquire({0, 1}, 1));
  test.check_at_rest();
}

TEST(ExpertLease, MovesAndIsDroppedOnce) {
  Streamed test;
  ExpertLease a = test.load({2, 0});
  ExpertLease b = std::move(a);
  EXPECT_TRUE(b);
  ExpertLease c = test.load({2, 1});
  EXPECT_FALSE(test.store().acquire({2, 2}, 1));
  c = std::move(b);  // drops the lease on {2, 1}
  EXPECT_TRUE(test.has_bytes(c, {2, 0}));
  EXPECT_TRUE(test.store().acquire({2, 2}, 1));
  EXPECT_FALSE(test.store().is_resident({2, 1}));
  c = {};
  EXPECT_TRUE(test.store().acquire({2, 3}, 1));
}

TEST(ExpertStore, AFailedPartIsNeverResidentAndSettleRecovers) {
  for (uint64_t part = 0; part < 3; ++part) {
    SCOPED_TRACE(part);
    Streamed test({.drive = {.planned = {{part, FakeFault::broken}}}});
    ExpertStore& store = test.store();
    ExpertLease bad = store.acquire({0, 7}, 1);
    ExpertLease good = store.acquire({0, 8}, 1);
    while (!store.error()) store.wait();
    EXPECT_EQ(store.error()->kind, ErrorKind::io);
    EXPECT_FALSE(bad.ready(test.layout(0).all_parts()));
    EXPECT_FALSE(store.is_resident({0, 7}));
    bad = {};
    good = {};
    store.settle();
    EXPECT_FALSE(store.error().has_value());
    EXPECT_FALSE(store.is_resident({0, 7}));
    EXPECT_TRUE(store.is_resident({0, 8})) << "its reads were awaited";
    EXPECT_TRUE(test.has_bytes(store.acquire({0, 8}, 1), {0, 8}));
    EXPECT_EQ(store.stats().hit_count, 1u);

    bad = test.load({0, 7});
    EXPECT_TRUE(test.has_bytes(bad, {0, 7})) << "trying again gives the right bytes";
    test.check_at_rest();
  }
}

TEST(ExpertStore, AllPartsMayFail) {
  Streamed test;
  for (int round = 0; round < 3; ++round) {
    test.drive().break_range({0, 0, 260'000});
    for (uint32_t index = 0; index < 4; ++index) EXPECT_TRUE(test.store().acquire({0, index}, 1));
    while (!test.store().error()) test.store().wait();
    test.store().settle();
  }
  EXPECT_EQ(test.store().stats().miss_count, 12u) << "slots of failed reads are used again";
  EXPECT_TRUE(test.has_bytes(test.load({1, 0}), {1, 0})) << "the other file is well";
}

TEST(ExpertStore, DestructionWaitsForItsReads) {
  Streamed test;
  for (uint32_t index = 0; index < 4; ++index) test.store().acquire({1, index}, 1);
  test.store().pump();
  EXPECT_GT(test.drive().in_flight_count(), 0u);
  test.destroy_store();
  EXPECT_EQ(test.drive().in_flight_count(), 0u);
}

TEST(ExpertStore, PreloadReadsEverything) {
  Streamed test(
      {.drive = {.seed = 3, .shares = {.short_unaligned = 0.2, .delayed = 0.2}, .reorder = true},
       .slots = {kExperts, kExperts, kExperts},
       .queue = {.request_count_max = 7}});
  ASSERT_TRUE(test.store().preload().ok());
  for (uint32_t layer = 0; layer < 3; ++layer)
    for (uint32_t index = 0; index < kExperts; ++index)
      EXPECT_TRUE(test.has_bytes(test.store().acquire({layer, index}, 1), {layer, index}));
  const ExpertStats stats = test.store().stats();
  EXPECT_EQ(stats.hit_count, 3u * kExperts);
  EXPECT_EQ(stats.demand_read_count + stats.eviction_count, 0u);
  test.check_at_rest();
}

TEST(ExpertStore, AFailedPreloadSaysWhy) {
  Streamed test(
      {.drive = {.planned = {{20, FakeFault::broken}}}, .slots = {kExperts, kExperts, kExperts}});
  const Status loaded = test.store().preload();
  ASSERT_FALSE(loaded.ok());
  EXPECT_NE(loaded.error().message.find("a.gguf: reading"), std::string::npos);
  EXPECT_FALSE(test.store().error().has_value());
}

TEST(ExpertStore, GivingUpDropsWhatHasNotStarted) {
  Streamed test({.drive = {.depth_max = 2}});
  for (uint32_t index = 0; index < 3; ++index) EXPECT_TRUE(test.store().acquire({0, index}, 1));
  test.store().pump();
  test.store().give_up();
  EXPECT_EQ(test.drive().log().size(), 2u) << "of nine reads";
  EXPECT_FALSE(test.store().error().has_value());
  for (uint32_t index = 0; index < 3; ++index) {
    EXPECT_FALSE(test.store().is_resident({0, index}));
    EXPECT_TRUE(test.has_bytes(test.load({0, index}), {0, index}));
  }
}

TEST(ExpertStore, AfterAnErrorThereIsNoLeaseBeforeSettling) {
  Streamed test({.drive = {.planned = {{0, FakeFault::broken}}}});
  test.load({1, 0});
  ASSERT_TRUE(test.store().error().has_value());
  EXPECT_FALSE(test.store().acquire({1, 0}, 1));
  EXPECT_FALSE(test.store().acquire({1, 1}, 1));
  test.store().settle();
  EXPECT_TRUE(test.store().acquire({1, 0}, 1));
}

TEST(ExpertStore, DistinctExpertsAreCountedFromAMark) {
  Streamed test;
  for (const uint32_t index : {0, 1, 0, 1, 2}) test.load({0, index});
  test.load({1, 0});
  EXPECT_EQ(test.store().stats().distinct_count, 4u);
  test.store().mark();
  for (const uint32_t index : {2, 3, 2}) test.load({0, index});
  EXPECT_EQ(test.store().stats().distinct_count, 6u);
}

TEST(ExpertStore, ForgettingEmptiesEverySlot) {
  Streamed test;
  for (uint32_t index = 0; index < 4; ++index) test.load({0, index});
  test.store().forget_all();
  for (uint32_t index = 0; index < 4; ++index) EXPECT_FALSE(test.store().is_resident({0, index}));
  EXPECT_TRUE(test.has_bytes(test.load({0, 0}), {0, 0}));
  EXPECT_EQ(test.store().stats().miss_count, 5u);
  EXPECT_EQ(test.store().stats().eviction_count, 0u);
}

/// Layers 0 and 2 share slots of 24 KiB, those of layer 1 are of 20 KiB.
TEST(ExpertStore, GivesMemoryBackAndTakesItAgain) {
  Streamed test({.slots = {6, 4, 6}, .used_count = 2});
  ExpertStore& store = test.store();
  for (uint32_t layer = 0; layer < 3; ++layer)
    for (uint32_t index = 0; index < 6; ++index) test.load({layer, index});
  const uint64_t all = test.pool().table().plan().bytes();
  ASSERT_EQ(all, 12u * 24'576 + 4 * 20'480);
  EXPECT_EQ(store.give_back(0), 0u);
  EXPECT_EQ(store.give_back(30'000), 24'576u + 20'480) << "evenly from both sizes";
  EXPECT_EQ(store.given_back_bytes(), 24'576u + 20'480);
  EXPECT_EQ(test.ledger().bytes(MemoryUse::cache), test.pool().bytes() - 24'576 - 20'480);
  test.check_sums();

  const uint64_t most = 8u * 24'576 + 2 * 20'480;
  EXPECT_EQ(store.give_back(uint64_t{1} << 40), most - 24'576 - 20'480);
  EXPECT_EQ(store.give_back(1), 0u) << "two experts of each layer stay";
  for (uint32_t layer = 0; layer < 3; ++layer)
    for (const uint32_t index : {4u, 5u}) EXPECT_TRUE(store.is_resident({layer, index}));
  test.load({0, 8});
  EXPECT_FALSE(store.is_resident({0, 4})) << "with two slots, one of two has to leave";

  EXPECT_EQ(store.take_back(20'479), 0u);
  EXPECT_EQ(store.take_back(3 * 24'576), 3u * 24'576);
  EXPECT_EQ(store.take_back(uint64_t{1} << 40), most - 3 * 24'576);
  EXPECT_EQ(store.given_back_bytes(), 0u);
  EXPECT_EQ(test.ledger().bytes(MemoryUse::cache), test.pool().bytes());
  const uint64_t evictions = store.stats().eviction_count;
  for (uint32_t index = 0; index < 6; ++index)
    EXPECT_TRUE(test.has_bytes(test.load({2, index}), {2, index}));
  EXPECT_EQ(store.stats().eviction_count, evictions) << "all six slots may be used again";
  test.check_at_rest();
}

/// The size class that has the largest share in use may have nothing left to give.
TEST(ExpertStore, GivesBackWhatTheOtherSizesHave) {
  Streamed test({.slots = {9, 2, 9}, .used_count = 2});
  EXPECT_EQ(test.store().give_back(uint64_t{1} << 40), 14u * 24'576);
}

TEST(ExpertStore, TheRingGivesBackDownToTheExpertsOfOneToken) {
  Streamed test({.slots = {10}, .used_count = 4});
  for (uint32_t index = 0; index < 9; ++index) test.load({index % 3, index});
  EXPECT_EQ(test.store().give_back(uint64_t{1} << 40), 6u * 24'576);
  for (uint32_t index = 5; index < 9; ++index)
    EXPECT_TRUE(test.store().is_resident({index % 3, index})) << index;
  EXPECT_EQ(test.store().take_back(uint64_t{1} << 40), 6u * 24'576);
  test.check_at_rest();
}

TEST(ExpertStore, AStoppedPreloadSaysSo) {
  Streamed test({.slots = {kExperts, kExperts, kExperts}});
  const std::atomic<bool> stop{true};
  const Status loaded = test.store().preload(&stop);
  ASSERT_FALSE(loaded.ok());
  EXPECT_EQ(loaded.error().kind, ErrorKind::interrupted);
  EXPECT_EQ(test.drive().in_flight_count(), 0u);
}

}  // namespace
}  // namespace sluice
