#include "experts/expert_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <fstream>

#include "experts/cache_test.h"

namespace sluice {
namespace {

uint64_t count_misses(const std::vector<uint32_t>& trace, uint32_t expert_count, uint32_t slots) {
  TestedCache cache(layer_setup({expert_count}, {slots}));
  uint64_t misses = 0;
  for (const uint32_t expert : trace) misses += cache.use({0, expert}) ? 0 : 1;
  return misses;
}

// The reference strings of the textbooks on paging: Silberschatz, Galvin and Gagne; Belady.
TEST(ExpertCache, MissesAsTheTextbooksCount) {
  const std::vector<uint32_t> silberschatz{7, 0, 1, 2, 0, 3, 0, 4, 2, 3,
                                           0, 3, 2, 1, 2, 0, 1, 7, 0, 1};
  EXPECT_EQ(count_misses(silberschatz, 8, 3), 12u);
  EXPECT_EQ(count_misses(silberschatz, 8, 4), 8u);
  const std::vector<uint32_t> belady{1, 2, 3, 4, 1, 2, 5, 1, 2, 3, 4, 5};
  EXPECT_EQ(count_misses(belady, 6, 3), 10u);
  EXPECT_EQ(count_misses(belady, 6, 4), 8u);
}

TEST(ExpertCache, ACycleLongerThanTheCacheNeverHits) {
  std::vector<uint32_t> cycle;
  for (uint32_t i = 0; i < 90; ++i) cycle.push_back(i % 9);
  EXPECT_EQ(count_misses(cycle, 9, 8), 90u);
  EXPECT_EQ(count_misses(cycle, 9, 9), 9u);
}

/// The routing of a small model, recorded: "layer token expert expert …".
std::vector<ExpertId> recorded_routing() {
  std::ifstream file(SLUICE_SOURCE_DIR "/tests/data/cases/qwen3moe/experts.txt");
  std::vector<std::array<uint32_t, 6>> rows;
  for (std::array<uint32_t, 6> row; true; rows.push_back(row)) {
    for (uint32_t& value : row) file >> value;
    if (!file) break;
  }
  std::ranges::stable_sort(rows, {}, [](const auto& row) { return row[1]; });  // token by token
  std::vector<ExpertId> trace;
  for (const auto& row : rows)
    for (size_t i = 2; i < row.size(); ++i) trace.push_back({row[0], row[i]});
  return trace;
}

/// Misses of LRU by stack distance (Mattson et al. 1970): an expert is there if fewer than `slots`
/// others of its layer were used since its last use.
uint64_t misses_by_stack_distance(const std::vector<ExpertId>& trace, size_t slots) {
  uint64_t misses = 0;
  for (size_t i = 0; i < trace.size(); ++i) {
    std::vector<uint32_t> since;
    size_t j = i;
    while (j > 0 && trace[j - 1] != trace[i]) {
      --j;
      if (trace[j].layer != trace[i].layer) continue;
      if (std::ranges::find(since, trace[j].index) == since.end()) since.push_back(trace[j].index);
    }
    const bool used_before = j > 0;
    misses += used_before && since.size() < slots ? 0 : 1;
  }
  return misses;
}

TEST(ExpertCache, ReplaysARecordedRouting) {
  const std::vector<ExpertId> trace = recorded_routing();
  ASSERT_EQ(trace.size(), 3u * 24 * 4);
  uint64_t fewest = trace.size();
  for (uint32_t slots = 4; slots <= 16; ++slots) {
    TestedCache cache(layer_setup({16, 16, 16}, {slots, slots, slots}));
    uint64_t misses = 0;
    for (const ExpertId id : trace) misses += cache.use(id) ? 0 : 1;
    EXPECT_EQ(misses, misses_by_stack_distance(trace, slots)) << slots;
    EXPECT_LE(misses, fewest) << "LRU has no anomaly";
    fewest = misses;
    if (slots == 16) {
      EXPECT_EQ(misses, 15u + 16 + 16) << "each expert once";
    }
  }
}

/// A ring hits as one list over all layers does: a cycle longer than it never does.
TEST(ExpertCache, LayersCompeteInTheRing) {
  TestedCache cache(ring_setup({4, 4, 4}, 6));
  for (uint32_t round = 0; round < 5; ++round)
    for (uint32_t layer = 0; layer < 3; ++layer)
      for (const uint32_t index : {0, 1})
        EXPECT_EQ(cache.use({layer, index}), round > 0) << "6 experts, 6 slots";
  EXPECT_FALSE(cache.use({2, 3}));
  EXPECT_FALSE(cache.holds({0, 0})) << "the least recently used of all layers";
  for (uint32_t round = 0; round < 5; ++round)
    for (uint32_t i = 0; i < 7; ++i) EXPECT_FALSE(cache.use({i / 4, i % 4}) && round > 0);
}

TEST(ExpertCache, AnUnusedPrefetchLeavesFirst) {
  TestedCache cache(layer_setup({8}, {4}));
  for (const uint32_t index : {0, 1}) cache.use({0, index});
  ASSERT_TRUE(cache.bring({0, 2}, SlotUse::prefetch));
  ASSERT_TRUE(cache.bring({0, 3}, SlotUse::prefetch));
  cache.use({0, 2});  // it has proved right
  cache.use({0, 4});
  EXPECT_FALSE(cache.holds({0, 3})) << "though 0 was used longest ago";
  cache.use({0, 5});
  EXPECT_FALSE(cache.holds({0, 0}));
  EXPECT_TRUE(cache.holds({0, 2}));
}

/// Filling what is empty is not a guess: what came in that way is ranked as any other.
TEST(ExpertCache, CountsTheMissesThatGuessesHaveCaused) {
  TestedCache cache(layer_setup({8}, {2}));
  const auto start_token = [&] { cache->begin_tokens(1); };
  cache.use({0, 0});
  cache.use({0, 1});
  start_token();
  EXPECT_TRUE(cache.bring({0, 2}, SlotUse::prefetch)) << "expert 0 leaves for it";
  EXPECT_TRUE(cache.bring({0, 3}, SlotUse::prefetch)) << "the wrong guess leaves, not expert 1";
  EXPECT_EQ(cache->regret_count(), 0u);
  EXPECT_FALSE(cache.use({0, 0}));
  EXPECT_EQ(cache->regret_count(), 1u) << "it would still be here";

  start_token();
  EXPECT_TRUE(cache.bring({0, 4}, SlotUse::prefetch)) << "expert 1 leaves for it";
  EXPECT_TRUE(cache.use({0, 4})) << "and would have left anyhow";
  start_token();
  EXPECT_FALSE(cache.use({0, 1}));
  EXPECT_EQ(cache->regret_count(), 1u);
  EXPECT_FALSE(cache.use({0, 5})) << "one that left for demand is nobody's regret";
  EXPECT_EQ(cache->regret_count(), 1u);

  start_token();
  EXPECT_TRUE(cache.bring({0, 6}, SlotUse::prefetch)) << "expert 1 leaves for it";
  EXPECT_FALSE(cache.use({0, 7})) << "expert 1 would have left for this one";
  start_token();
  EXPECT_FALSE(cache.use({0, 1}));
  EXPECT_EQ(cache->regret_count(), 1u);

  start_token();
  cache.use({0, 7});
  EXPECT_TRUE(cache.bring({0, 0}, SlotUse::prefetch)) << "expert 1 leaves for it";
  EXPECT_TRUE(cache.use({0, 0}));
  EXPECT_FALSE(cache.use({0, 1}));
  EXPECT_EQ(cache->regret_count(), 2u) << "demand would have kept what this token uses";
}

// What would be gone for another reason is nobody's regret.
TEST(ExpertCache, MemoryGivenBackAndAClearedCacheAreNoRegrets) {
  TestedCache cache(layer_setup({8}, {3}));
  for (const uint32_t index : {0u, 1u, 2u}) cache.use({0, index});
  cache->begin_tokens(1);
  EXPECT_TRUE(cache.bring({0, 3}, SlotUse::prefetch)) << "expert 0 leaves for it";
  ASSERT_NE(cache->withdraw(0), kNoSlot) << "and the guess for nobody";
  cache->begin_tokens(1);
  EXPECT_FALSE(cache.use({0, 0}));
  EXPECT_EQ(cache->regret_count(), 0u);

  cache->begin_tokens(1);
  EXPECT_TRUE(cache.bring({0, 4}, SlotUse::prefetch)) << "expert 2 leaves for it";
  cache->clear();
  cache->begin_tokens(1);
  for (const uint32_t index : {0u, 1u, 2u}) EXPECT_FALSE(cache.use({0, index}));
  EXPECT_EQ(cache->regret_count(), 0u);
}

TEST(ExpertCache, AnIdleFillTakesEmptySlotsOnlyAndIsNoGuess) {
  TestedCache cache(layer_setup({8}, {2}));
  cache.use({0, 0});
  cache.use({0, 1});
  EXPECT_FALSE(cache.bring({0, 2}, SlotUse::idle_fill)) << "nothing leaves for it";
  cache->unbind(cache->find({0, 1}));
  EXPECT_TRUE(cache.bring({0, 1}, SlotUse::idle_fill));
  cache.use({0, 3});
  EXPECT_FALSE(cache.holds({0, 0})) << "used before 1";
  EXPECT_TRUE(cache.holds({0, 1}));
}

TEST(ExpertCache, WhatIsPredictedStaysForAPrefetchAndIsTheLastToLeaveForDemand) {
  TestedCache cache(ring_setup({4, 4, 4}, 3));
  cache->begin_tokens(1);
  cache->begin_layer(0, Ranking::worth);
  for (const uint32_t index : {0, 1, 2}) cache.use({2, index});
  for (const uint32_t index : {0, 1}) cache->predict({2, index});
  EXPECT_TRUE(cache.bring({1, 0}, SlotUse::prefetch));
  EXPECT_FALSE(cache.holds({2, 2})) << "the only one nobody expects";
  cache->predict({1, 0});
  EXPECT_FALSE(cache.bring({1, 1}, SlotUse::prefetch)) << "all are expected";
  cache.use({0, 0});
  EXPECT_FALSE(cache.holds({1, 0})) << "demand takes an expected one, the unused first";
  EXPECT_TRUE(cache.holds({2, 0}) && cache.holds({2, 1}));
  cache.use({0, 1});
  EXPECT_FALSE(cache.holds({0, 0})) << "that one is expected no more";
}

TEST(ExpertCache, APredictionHoldsForItsTokenAndUntilItsLayer) {
  TestedCache cache(ring_setup({4, 4, 4}, 2));
  cache.use({1, 0});
  cache.use({2, 0});
  cache->begin_tokens(1);
  cache->predict({1, 0});
  cache->predict({2, 0});
  EXPECT_FALSE(cache.bring({0, 0}, SlotUse::prefetch));
  cache->begin_layer(1, Ranking::worth);
  EXPECT_TRUE(cache.bring({0, 0}, SlotUse::prefetch));
  EXPECT_FALSE(cache.holds({1, 0})) << "its turn has come";
  cache.use({0, 0});
  EXPECT_FALSE(cache.bring({0, 1}, SlotUse::idle_fill));
  cache->begin_tokens(1);
  cache->predict({0, 0});
  EXPECT_TRUE(cache.bring({0, 1}, SlotUse::prefetch));
  EXPECT_FALSE(cache.holds({2, 0})) << "that was for the token before";
  cache.use({0, 1});
  cache->predict({0, 1});
  EXPECT_FALSE(cache.bring({1, 1}, SlotUse::prefetch)) << "the first layer is still to come";
}

/// The policy is told of uses by the number of the expert over all layers.
TEST(ExpertCache, ThePolicyRanksOverLayersAndTime) {
  const CacheSetup setup = ring_setup({2, 0, 2, 2}, 3);
  TestedCache cache(setup, std::make_unique<DecayPolicy>(TestedCache::expert_total(setup), 4));
  cache->begin_tokens(1);
  for (const ExpertId id : {ExpertId{2, 0}, {2, 0}, {2, 0}, {0, 1}, {0, 1}, {3, 0}}) cache.use(id);
  cache->begin_layer(0, Ranking::recency);
  cache.use({3, 1});
  EXPECT_FALSE(cache.holds({2, 0})) << "a prompt: the least recently used";
  cache->begin_layer(0, Ranking::worth);
  cache.use({0, 0});
  EXPECT_FALSE(cache.holds({3, 0})) << "used once, and before 3 1";
  cache->begin_tokens(8);  // 0 1 has 2/4 left
  cache.use({3, 1});
  cache.use({3, 1});
  cache.use({0, 0});
  cache.use({2, 1});
  EXPECT_FALSE(cache.holds({0, 1}));
}

TEST(ExpertCache, SlotsBeingReadStay) {
  TestedCache cache(layer_setup({5}, {2}));
  const SlotIndex first = cache->bind({0, 0}, SlotUse::demand);
  cache.state(first).begin_read();
  cache.use({0, 1});
  const SlotIndex slot = cache->bind({0, 2}, SlotUse::demand);
  EXPECT_NE(slot, first);
  EXPECT_FALSE(cache.holds({0, 1}));
  cache.state(slot).begin_read();
  EXPECT_EQ(cache->bind({0, 3}, SlotUse::demand), kNoSlot);
  EXPECT_EQ(cache->eviction_count(), 1u);
}

TEST(ExpertCache, LeasedSlotsStay) {
  TestedCache cache(layer_setup({5}, {2}));
  cache.use({0, 0});
  cache.use({0, 1});
  cache.state(ExpertId{0, 0}).add_lease();
  cache.use({0, 2});
  EXPECT_TRUE(cache.holds({0, 0}));
  cache.state(ExpertId{0, 2}).add_lease();
  EXPECT_EQ(cache->bind({0, 3}, SlotUse::demand), kNoSlot);
  cache.state(ExpertId{0, 0}).drop_lease();
  EXPECT_NE(cache->bind({0, 3}, SlotUse::demand), kNoSlot);
  EXPECT_FALSE(cache.holds({0, 0}));
}

TEST(ExpertCache, AFailedSlotIsForgottenAndUsedAgain) {
  TestedCache cache(layer_setup({5}, {1}));
  const SlotIndex slot = cache->bind({0, 0}, SlotUse::demand);
  cache.state(slot).begin_read();
  cache.state(slot).fail();
  EXPECT_EQ(cache->bind({0, 1}, SlotUse::demand), kNoSlot) << "reads may still be in flight";
  cache->unbind(slot);
  EXPECT_FALSE(cache.holds({0, 0}));
  EXPECT_EQ(cache.state(slot).phase(), SlotPhase::empty);
  EXPECT_EQ(cache->bind({0, 1}, SlotUse::demand), slot);
  EXPECT_EQ(cache->eviction_count(), 0u);
}

TEST(ExpertCache, DistinctExpertsAreCountedFromTheMark) {
  TestedCache cache(layer_setup({4}, {2}));
  EXPECT_TRUE(cache->first_since_mark({0, 3}));
  EXPECT_FALSE(cache->first_since_mark({0, 3}));
  EXPECT_TRUE(cache->first_since_mark({0, 1}));
  cache->mark();
  EXPECT_TRUE(cache->first_since_mark({0, 3}));
}

TEST(ExpertCache, ClearingForgetsEveryExpert) {
  TestedCache cache(layer_setup({4, 4}, {2, 3}));
  for (const uint32_t layer : {0u, 1u})
    for (const uint32_t index : {0u, 1u}) cache.use({layer, index});
  cache->clear();
  for (SlotIndex slot = 0; slot < 5; ++slot) EXPECT_EQ(cache.state(slot).phase(), SlotPhase::empty);
  EXPECT_FALSE(cache.use({1, 1}));
  EXPECT_EQ(cache->eviction_count(), 0u) << "being emptied is not being evicted";
}

TEST(ExpertCacheDeathTest, OurOwnMistakesStopTheProcess) {
  TestedCache cache(layer_setup({5}, {2}));
  cache.use({0, 1});
  EXPECT_DEATH(cache->bind({0, 1}, SlotUse::demand), "check failed") << "it has a slot";
  const SlotIndex slot = cache->find({0, 1});
  cache.state(slot).add_lease();
  EXPECT_DEATH(cache->unbind(slot), "check failed") << "somebody computes with it";
}

}  // namespace
}  // namespace sluice
