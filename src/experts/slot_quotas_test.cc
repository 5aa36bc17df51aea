// How slots move between layers and out of use, by examples. That they do so over random traffic as
// a simple model does is shown in expert_cache_random_test.cc.
#include <gtest/gtest.h>

#include <algorithm>

#include "experts/cache_test.h"

namespace sluice {
namespace {

using Counts = std::vector<uint32_t>;
using Shares = std::vector<ExpertCache::Share>;

Counts quotas(const TestedCache& cache, const ExpertCache& bookkeeping) {
  Counts result;
  for (uint32_t layer = 0; layer < cache.table().layer_count(); ++layer)
    result.push_back(bookkeeping.quota(layer));
  return result;
}

Counts slot_counts(const TestedCache& cache, const ExpertCache& bookkeeping) {
  Counts result;
  for (uint32_t layer = 0; layer < cache.table().layer_count(); ++layer)
    result.push_back(cache.table().class_of(layer) == kNoSlotClass ? 0
                                                                   : bookkeeping.slot_count(layer));
  return result;
}

void use_all(TestedCache& cache, uint32_t layer, uint32_t count) {
  for (uint32_t index = 0; index < count; ++index) cache.use({layer, index});
}

TEST(SlotQuotas, ALayerAtItsQuotaLosesOneOfItsOwnThoughSlotsAreEmpty) {
  TestedCache cache(layer_setup({9, 9}, {3, 3}));
  use_all(cache, 0, 5);
  EXPECT_EQ(slot_counts(cache, *cache), (Counts{3, 0}));
  EXPECT_EQ(cache->eviction_count(), 2u);
}

TEST(SlotQuotas, LendersGiveInProportionToWhatTheyCanSpare) {
  TestedCache cache(layer_setup({20, 20, 20, 20, 20}, {4, 12, 6, 8, 3}, 2));
  cache->lend(Shares{{.layer = 0, .slot_count = 14}}, 0.5);
  // Half of theirs is 6, 3, 4 and 2, rounded up: 15. Of these 10 are wanted, from each as many in
  // 15 as it has, rounded up: 4, 2, 3, 2. One is left over.
  EXPECT_EQ(quotas(cache, *cache), (Counts{14, 12 - 4, 6 - 2, 8 - 3, 3 - 2}));
  cache->end_lending();
  EXPECT_EQ(quotas(cache, *cache), (Counts{4, 12, 6, 8, 3}));
}

TEST(SlotQuotas, LendersKeepTheirShare) {
  TestedCache cache(layer_setup({90, 90, 90}, {10, 10, 3}, 2));
  const Shares all{{.layer = 1, .slot_count = 90}};
  cache->lend(all, 0.5);
  EXPECT_EQ(quotas(cache, *cache), (Counts{5, 17, 1}));
  cache->lend(all, 0);
  EXPECT_EQ(quotas(cache, *cache), (Counts{0, 23, 0}));
  cache->lend(all, 1);
  EXPECT_EQ(quotas(cache, *cache), (Counts{10, 10, 3}));
}

TEST(SlotQuotas, BorrowersAreServedInTheirOrder) {
  TestedCache cache(layer_setup({9, 9, 9, 9}, {4, 4, 4, 4}, 1));
  cache->lend(Shares{{.layer = 1, .slot_count = 9}, {.layer = 2, .slot_count = 9}}, 0.25);
  EXPECT_EQ(quotas(cache, *cache), (Counts{1, 9, 5, 1}));
  cache->lend(Shares{{.layer = 2, .slot_count = 6}, {.layer = 3, .slot_count = 2}}, 0.25);
  EXPECT_EQ(quotas(cache, *cache), (Counts{3, 3, 6, 4})) << "a new loan replaces the one before";
}

TEST(SlotQuotas, LayersOfOtherSizesTakeNoPart) {
  TestedCache cache({.expert_counts = {9, 9, 9, 9},
                     .plan = plan_layer_pool({64, 128, 64, 128}, {4, 4, 4, 4}),
                     .used_count = 1});
  cache->lend(Shares{{.layer = 0, .slot_count = 9}, {.layer = 1, .slot_count = 5}}, 0.25);
  EXPECT_EQ(quotas(cache, *cache), (Counts{7, 5, 1, 3}));
}

TEST(SlotQuotas, TheRingHasNoneToLend) {
  TestedCache cache(ring_setup({9, 9}, 5));
  cache->lend(Shares{{.layer = 0, .slot_count = 9}}, 0.5);
  EXPECT_EQ(quotas(cache, *cache), (Counts{kNoQuota, kNoQuota}));
  use_all(cache, 0, 9);
  EXPECT_EQ(cache->slot_count(0), 5u);
}

TEST(SlotQuotas, ABorrowerTakesFromTheLayerThatHoldsMostBeyondItsQuota) {
  TestedCache cache(layer_setup({9, 9, 9}, {3, 4, 6}, 1));
  use_all(cache, 1, 4);
  use_all(cache, 2, 6);
  use_all(cache, 0, 3);
  cache->lend(Shares{{.layer = 0, .slot_count = 9}}, 0.5);
  ASSERT_EQ(quotas(cache, *cache), (Counts{8, 2, 3}));
  cache.use({0, 3});
  EXPECT_EQ(slot_counts(cache, *cache), (Counts{4, 4, 5})) << "nothing leaves until it must";
  EXPECT_FALSE(cache.holds({2, 0}));
  for (uint32_t index = 4; index < 8; ++index) cache.use({0, index});
  EXPECT_EQ(slot_counts(cache, *cache), (Counts{8, 2, 3}));
  cache.use({0, 8});
  EXPECT_FALSE(cache.holds({0, 0})) << "at its quota it loses its own";
  EXPECT_EQ(slot_counts(cache, *cache), (Counts{8, 2, 3}));

  cache->end_lending();
  cache.use({0, 0});
  EXPECT_EQ(cache->slot_count(0), 8u) << "what it has it keeps while nobody misses it";
  use_all(cache, 2, 6);
  EXPECT_EQ(slot_counts(cache, *cache), (Counts{5, 2, 6}));
  use_all(cache, 1, 4);
  EXPECT_EQ(slot_counts(cache, *cache), (Counts{3, 4, 6}));
}

/// A borrower does not wait for a slot that its owner still reads or computes with.
TEST(SlotQuotas, WhenTheLenderCannotGiveTheBorrowerLosesItsOwn) {
  TestedCache cache(layer_setup({9, 9}, {2, 3}, 1));
  use_all(cache, 0, 2);
  use_all(cache, 1, 3);
  cache->lend(Shares{{.layer = 0, .slot_count = 4}}, 0.4);
  for (uint32_t index = 0; index < 3; ++index) cache.state(ExpertId{1, index}).add_lease();
  EXPECT_FALSE(cache.use({0, 5}));
  EXPECT_EQ(slot_counts(cache, *cache), (Counts{2, 3}));
  cache.state(ExpertId{1, 1}).drop_lease();
  EXPECT_FALSE(cache.use({0, 6}));
  EXPECT_EQ(slot_counts(cache, *cache), (Counts{3, 2}));
  EXPECT_FALSE(cache.holds({1, 1}));
}

TEST(SlotQuotas, EmptySlotsAreWithdrawnFirst) {
  TestedCache cache(layer_setup({9, 9}, {3, 5}, 2));
  use_all(cache, 1, 4);
  use_all(cache, 0, 1);
  for (int i = 0; i < 3; ++i) EXPECT_NE(cache->withdraw(0), kNoSlot);
  EXPECT_EQ(cache->eviction_count(), 0u);
  EXPECT_EQ(quotas(cache, *cache), (Counts{2, 3})) << "from whoever has most; the first of equals";
  const SlotIndex slot = cache->withdraw(0);
  EXPECT_EQ(quotas(cache, *cache), (Counts{2, 2}));
  EXPECT_EQ(cache->eviction_count(), 1u);
  EXPECT_FALSE(cache.holds({1, 0})) << "its least useful";
  EXPECT_EQ(cache.state(slot).phase(), SlotPhase::empty);
  EXPECT_EQ(cache->withdraw(0), kNoSlot) << "k experts stay";
  EXPECT_EQ(cache->withdrawn_count(0), 4u);
}

TEST(SlotQuotas, SlotsComeBackToWhoLostMost) {
  TestedCache cache(layer_setup({9, 9}, {3, 6}, 1));
  std::vector<SlotIndex> withdrawn;
  for (int i = 0; i < 5; ++i) withdrawn.push_back(cache->withdraw(0));
  EXPECT_EQ(quotas(cache, *cache), (Counts{2, 2}));
  std::vector<SlotIndex> restored;
  for (int i = 0; i < 5; ++i) {
    restored.push_back(cache->restore(0));
    if (i == 2) {
      EXPECT_EQ(quotas(cache, *cache), (Counts{2, 5}));
    }
  }
  EXPECT_EQ(quotas(cache, *cache), (Counts{3, 6}));
  std::ranges::reverse(restored);
  EXPECT_EQ(restored, withdrawn) << "the last to go is the first to come back";
  EXPECT_EQ(cache->restore(0), kNoSlot);
  use_all(cache, 0, 3);
  use_all(cache, 1, 6);
  EXPECT_EQ(cache->eviction_count(), 0u) << "all of them may be used again";
}

TEST(SlotQuotas, TheRingKeepsTheExpertsOfOneToken) {
  for (const uint32_t used : {0, 2, 9}) {
    TestedCache cache(ring_setup({9, 9}, 9, 4));
    use_all(cache, 1, used);
    for (int i = 0; i < 5; ++i) EXPECT_NE(cache->withdraw(0), kNoSlot) << i;
    EXPECT_EQ(cache->withdraw(0), kNoSlot) << "4 of 9 are left";
    EXPECT_EQ(cache->slot_count(0), std::min(used, 4u));
    while (cache->restore(0) != kNoSlot) continue;
    EXPECT_EQ(cache->withdrawn_count(0), 0u);
    use_all(cache, 0, 9);
    EXPECT_EQ(cache->slot_count(0), 9u);
  }
}

TEST(SlotQuotas, WhatIsLeasedOrReadIsNotWithdrawn) {
  TestedCache cache(layer_setup({9}, {3}, 1));
  use_all(cache, 0, 2);
  const SlotIndex reading = cache->bind({0, 2}, SlotUse::demand);
  cache.state(reading).begin_read();
  cache.state(ExpertId{0, 0}).add_lease();
  EXPECT_EQ(cache->withdraw(0), 1u);
  EXPECT_FALSE(cache.holds({0, 1}));
  EXPECT_EQ(cache->withdraw(0), kNoSlot);
  EXPECT_EQ(quotas(cache, *cache), (Counts{2})) << "a refusal changes nothing";
}

/// The layer with the largest quota need not be the one that holds most.
TEST(SlotQuotas, WithdrawnIsWhatALayerHoldsBeyondItsQuota) {
  TestedCache cache(layer_setup({20, 20}, {8, 10}, 2));
  cache->lend(Shares{{.layer = 0, .slot_count = 16}}, 0.25);
  use_all(cache, 0, 16);
  use_all(cache, 1, 2);
  cache->end_lending();
  ASSERT_EQ(slot_counts(cache, *cache), (Counts{16, 2}));
  for (int i = 0; i < 14; ++i) ASSERT_NE(cache->withdraw(0), kNoSlot) << i;
  EXPECT_EQ(quotas(cache, *cache), (Counts{2, 2}));
  EXPECT_EQ(slot_counts(cache, *cache), (Counts{2, 2})) << "all from the layer that held too many";
  EXPECT_TRUE(cache.holds({0, 15}) && cache.holds({1, 0}));
}

TEST(SlotQuotas, OnlyTheClassThatIsAskedShrinks) {
  TestedCache cache(
      {.expert_counts = {9, 9}, .plan = plan_layer_pool({64, 128}, {4, 4}), .used_count = 1});
  use_all(cache, 0, 4);
  use_all(cache, 1, 4);
  const SlotIndex slot = cache->withdraw(1);
  EXPECT_EQ(cache.table().class_of_slot(slot), 1u);
  EXPECT_EQ(quotas(cache, *cache), (Counts{4, 3}));
  EXPECT_EQ(cache->withdrawn_count(0), 0u);
  EXPECT_EQ(cache->restore(0), kNoSlot);
  EXPECT_EQ(cache->restore(1), slot);
}

}  // namespace
}  // namespace sluice
