#include "experts/residency_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/random.h"

namespace sluice {
namespace {

uint64_t bytes_of(const ResidencyInput& input, const std::vector<uint32_t>& slot_counts) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < slot_counts.size(); ++i)
    bytes += slot_counts[i] * input.layers[i].slot_bytes;
  return bytes;
}

TEST(ResidencyPlan, EqualSlotsAndTheRestToTheFirstLayers) {
  const auto plan = plan_residency(
      {.layers = {{16, 100}, {16, 100}, {16, 100}}, .used_count = 4, .cache_bytes_max = 2050});
  EXPECT_EQ(plan.slot_counts, (std::vector<uint32_t>{7, 7, 6}));
  EXPECT_EQ(plan.cache_bytes, 2000u);
  EXPECT_FALSE(plan.all_resident);
  EXPECT_TRUE(plan.notes.empty());
}

TEST(ResidencyPlan, NeverMoreThanThereAreExperts) {
  const auto plan = plan_residency({.layers = {{16, 100}, {0, 0}, {4, 50}},
                                    .used_count = 4,
                                    .cache_bytes_max = uint64_t{1} << 40});
  EXPECT_EQ(plan.slot_counts, (std::vector<uint32_t>{16, 0, 4}));
  EXPECT_EQ(plan.cache_bytes, 1800u);
  EXPECT_TRUE(plan.all_resident);
}

TEST(ResidencyPlan, AllButOneSlotIsNotAll) {
  const ResidencyInput input{
      .layers = {{16, 100}, {16, 100}}, .used_count = 4, .cache_bytes_max = 3199};
  const auto plan = plan_residency(input);
  EXPECT_EQ(plan.slot_counts, (std::vector<uint32_t>{16, 15}));
  EXPECT_FALSE(plan.all_resident);
}

TEST(ResidencyPlan, TooLittleMemoryIsUsedAllTheSameAndSaidSo) {
  const auto plan = plan_residency(
      {.layers = {{16, 1 << 20}, {2, 1 << 20}}, .used_count = 4, .cache_bytes_max = 1 << 20});
  EXPECT_EQ(plan.slot_counts, (std::vector<uint32_t>{4, 2})) << "the experts of one token";
  EXPECT_EQ(plan.cache_bytes, 6u << 20);
  ASSERT_EQ(plan.notes.size(), 1u);
  EXPECT_EQ(
      plan.notes[0],
      "memory for the expert cache is short: 1.0 MiB are left, 6.0 MiB are used because the 4 "
      "experts of a token must fit at once; expect every expert to be read");
}

TEST(ResidencyPlan, SlotsMayBeAskedForOutright) {
  ResidencyInput input{.layers = {{16, 100}, {6, 100}},
                       .used_count = 4,
                       .cache_bytes_max = 2200,
                       .slots_per_layer = 9};
  const auto plan = plan_residency(input);
  EXPECT_EQ(plan.slot_counts, (std::vector<uint32_t>{9, 6}));
  EXPECT_TRUE(plan.notes.empty());
  input.slots_per_layer = 65536;
  EXPECT_TRUE(plan_residency(input).all_resident);
  EXPECT_TRUE(plan_residency(input).notes.empty());
  input.slots_per_layer = 2;
  const auto raised = plan_residency(input);
  EXPECT_EQ(raised.slot_counts, (std::vector<uint32_t>{4, 4}));
  ASSERT_EQ(raised.notes.size(), 1u);
  EXPECT_NE(raised.notes[0].find("4 slots a layer instead of 2"), std::string::npos);
}

TEST(ResidencyPlan, SlotsBeyondTheBytesAreNotGiven) {
  const auto plan = plan_residency({.layers = {{16, 100}, {16, 100}},
                                    .used_count = 4,
                                    .cache_bytes_max = 1500,
                                    .slots_per_layer = 12});
  EXPECT_EQ(plan.slot_counts, (std::vector<uint32_t>{8, 7}));
  EXPECT_EQ(plan.cache_bytes, 1500u);
  ASSERT_EQ(plan.notes.size(), 1u);
  EXPECT_NE(plan.notes[0].find("7 slots a layer instead of 12"), std::string::npos);
}

/// What the header promises, checked by trying rather than by computing it the same way.
TEST(ResidencyPlan, KeepsItsPromisesForRandomModels) {
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    ResidencyInput input;
    input.used_count = static_cast<uint32_t>(1 + random.below(8));
    for (uint64_t i = 0, count = 1 + random.below(6); i < count; ++i) {
      const bool streamed = random.below(5) != 0;
      const auto experts = static_cast<uint32_t>(input.used_count + random.below(20));
      input.layers.push_back({streamed ? experts : 0, streamed ? 1 + random.below(1000) : 0});
    }
    std::vector<uint32_t> floor, all;
    for (const auto& layer : input.layers) {
      floor.push_back(std::min(input.used_count, layer.expert_count));
      all.push_back(layer.expert_count);
    }
    input.cache_bytes_max = random.below(bytes_of(input, all) + 100);
    const auto plan = plan_residency(input);
    ASSERT_EQ(plan.cache_bytes, bytes_of(input, plan.slot_counts));
    ASSERT_EQ(plan.all_resident, plan.slot_counts == all);
    if (bytes_of(input, floor) > input.cache_bytes_max) {
      ASSERT_EQ(plan.slot_counts, floor);
      ASSERT_EQ(plan.notes.size(), 1u);
      continue;
    }
    ASSERT_TRUE(plan.notes.empty());
    ASSERT_LE(plan.cache_bytes, input.cache_bytes_max);
    // One slot more for every layer that can use it would not fit.
    uint32_t least = ~0u;
    for (size_t i = 0; i < all.size(); ++i) {
      ASSERT_GE(plan.slot_counts[i], floor[i]);
      ASSERT_LE(plan.slot_counts[i], all[i]);
      if (plan.slot_counts[i] < all[i]) least = std::min(least, plan.slot_counts[i]);
    }
    if (plan.all_resident) continue;
    std::vector<uint32_t> more;
    for (size_t i = 0; i < all.size(); ++i) more.push_back(std::min(least + 1, all[i]));
    ASSERT_GT(bytes_of(input, more), input.cache_bytes_max);
    for (size_t i = 0; i < all.size(); ++i) ASSERT_LE(plan.slot_counts[i], more[i]);
  }
}

}  // namespace
}  // namespace sluice
