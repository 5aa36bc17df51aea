#include "experts/contest_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/random.h"
#include "experts/cache_test.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using Layers = std::vector<EvictionContest::Layer>;

/// Experts in the order in which they would leave.
std::vector<uint32_t> order_of_leaving(const EvictionPolicy& policy, std::vector<uint32_t> experts,
                                       Ranking ranking) {
  std::ranges::sort(experts,
                    [&](uint32_t a, uint32_t b) { return policy.leaves_before(a, b, ranking); });
  return experts;
}

std::vector<uint32_t> first_experts(uint32_t count) {
  std::vector<uint32_t> experts(count);
  std::iota(experts.begin(), experts.end(), 0u);
  return experts;
}

/// Slots of each layer's shadow.
std::vector<uint32_t> planned_slots(const SlotPlan& plan,
                                    const std::vector<uint32_t>& expert_counts) {
  std::vector<uint32_t> slots;
  for (const EvictionContest::Layer& layer : plan_contest(plan, expert_counts)) {
    EXPECT_EQ(layer.expert_count, expert_counts[slots.size()]);
    slots.push_back(layer.slot_count);
  }
  return slots;
}

/// Decodes one token of one layer: what a forward pass tells its policy.
void decode(EvictionPolicy& policy, const std::vector<int32_t>& chosen) {
  policy.on_tokens(1);
  policy.on_routing(0, chosen);
  for (const int32_t expert : chosen) policy.on_use(static_cast<uint32_t>(expert), 1);
}

// Who takes part --------------------------------------------------------------------------------

TEST(PlanContest, ALayersShadowIsAsLargeAsItsQuota) {
  const SlotPlan plan = plan_layer_pool({64, 0, 64, 32}, {3, 0, 8, 5});
  EXPECT_THAT(planned_slots(plan, {8, 0, 8, 6}), ElementsAre(3, 0, 8, 5));
}

TEST(PlanContest, ARingIsDealtOutEvenlyAndEveryLayerMayLose) {
  const SlotPlan plan = plan_ring_pool({64, 0, 64, 32}, 16, 64);
  EXPECT_THAT(planned_slots(plan, {8, 0, 4, 6}), ElementsAre(5, 0, 3, 5));
}

// Prompt and decode -----------------------------------------------------------------------------

/// The last token likes 3 best, which was acquired first, as experts come in the order of their ids
/// or of the reads.
TEST(ContestPolicy, WhileAPromptGoesOnTheLastUseDecidesElseTheContest) {
  ContestPolicy policy({{6, 3}}, 2);
  policy.on_tokens(3);
  policy.on_routing(0, std::vector<int32_t>{1, 2, 4, 2, 3, 4});
  for (const uint32_t expert : {3, 1, 4, 2}) policy.on_use(expert, 1);
  EXPECT_THAT(order_of_leaving(policy, first_experts(6), Ranking::recency),
              ElementsAre(0, 5, 3, 1, 4, 2));
  EXPECT_THAT(order_of_leaving(policy, first_experts(6), Ranking::worth),
              ElementsAre(0, 5, 1, 2, 4, 3))
      << "by the tokens of the prompt, and the rank in each";
}

TEST(ContestPolicy, DecodingTeachesThePromptsOrderToo) {
  ContestPolicy policy({{6, 3}}, 2);
  decode(policy, {5, 0});
  decode(policy, {2, 5});
  EXPECT_THAT(order_of_leaving(policy, first_experts(6), Ranking::recency),
              ElementsAre(1, 3, 4, 0, 2, 5));
  EXPECT_THAT(order_of_leaving(policy, first_experts(6), Ranking::worth),
              ElementsAre(1, 3, 4, 0, 5, 2));
}

/// 1000 tokens of which the last 128 count: what only came before is as if never used, and old.
TEST(ContestPolicy, OfALongPromptTheEndIsLookedAt) {
  ContestPolicy policy({{6, 3}}, 1);
  decode(policy, {0});
  std::vector<int32_t> chosen(1000, 4);
  std::fill_n(chosen.begin(), 872, 1);
  chosen[872] = 2;
  policy.on_tokens(1000);
  policy.on_routing(0, chosen);
  for (const uint32_t expert : {1, 2, 4}) policy.on_use(expert, 1);
  EXPECT_THAT(order_of_leaving(policy, first_experts(6), Ranking::worth),
              ElementsAre(1, 3, 5, 0, 2, 4))
      << "1 was not seen; 0 was used before the prompt";
}

// Layers ----------------------------------------------------------------------------------------

TEST(ContestPolicy, ALayerWithoutShadowsIsRankedByRecency) {
  ContestPolicy policy({{4, 4}, {0, 0}, {4, 2}}, 1);
  policy.on_tokens(1);
  policy.on_routing(0, std::vector<int32_t>{3});
  for (const uint32_t expert : {3, 0, 2}) policy.on_use(expert, 1);
  for (const Ranking ranking : {Ranking::recency, Ranking::worth})
    EXPECT_THAT(order_of_leaving(policy, first_experts(4), ranking), ElementsAre(1, 3, 0, 2));
}

/// Two tokens through three layers: of what the same token used that leaves first whose layer has
/// just run, in whatever order the experts came.
TEST(ContestPolicy, InARingLayersCompeteByAgeInTokens) {
  const SlotPlan plan = plan_ring_pool({64, 64, 64}, 6, 64);
  ContestPolicy policy(plan_contest(plan, std::vector<uint32_t>{4, 4, 4}), 1);
  for (const int32_t expert : {0, 1}) {
    policy.on_tokens(1);
    for (uint32_t layer = 0; layer < 3; ++layer)
      policy.on_routing(layer, std::vector<int32_t>{expert});
  }
  EXPECT_THAT(order_of_leaving(policy, {0, 1, 4, 5, 8, 9}, Ranking::worth),
              ElementsAre(8, 4, 0, 9, 5, 1));
  policy.on_tokens(1);
  policy.on_routing(0, std::vector<int32_t>{2});
  EXPECT_THAT(order_of_leaving(policy, {0, 1, 2, 4, 5, 8, 9}, Ranking::worth),
              ElementsAre(0, 1, 8, 4, 2, 9, 5))
      << "in layer 0 a token has passed that layers 1 and 2 have yet to see";
}

/// Whoever leads, keys are as fresh as if all layers had just been ranked.
TEST(ContestPolicy, WhenTheLeadChangesEveryLayerIsRankedAnew) {
  constexpr uint32_t kExperts = 24;
  const Layers layers = {{kExperts, 6}, {kExperts, 6}};
  ContestPolicy policy(layers, 2);
  EvictionContest contest(layers, 2);
  Random random(9);
  bool has_changed = false;
  for (int token = 0; token < 1500; ++token) {
    policy.on_tokens(1);
    contest.begin_token();
    has_changed |= contest.leader() != EvictionContest::Order::recency;
    std::vector<LeaveKey> keys(2 * kExperts);
    for (uint32_t layer = 0; layer < 2; ++layer)
      contest.write_keys(layer, std::span(keys).subspan(layer * kExperts, kExperts));
    ASSERT_TRUE(std::ranges::equal(keys, policy.keys(Ranking::worth))) << token;
    for (uint32_t layer = 0; layer < 2; ++layer) {
      const auto a = static_cast<uint16_t>(std::min(random.below(24), random.below(12)));
      const auto b = static_cast<uint16_t>((a + 1 + random.below(4)) % kExperts);
      policy.on_routing(layer, std::vector<int32_t>{a, b});
      contest.on_routing(layer, std::vector<uint16_t>{a, b});
    }
  }
  EXPECT_TRUE(has_changed);
}

// In the expert cache ---------------------------------------------------------------------------

/// A prompt's first batch replaces by recency; its last, and decoding, by what the contest says.
TEST(ContestPolicy, RulesTheExpertCache) {
  const CacheSetup setup = layer_setup({8}, {3}, 1);
  TestedCache cache(
      setup, std::make_unique<ContestPolicy>(plan_contest(setup.plan, setup.expert_counts), 1));
  const auto play = [&](const std::vector<int32_t>& chosen, Ranking ranking,
                        const std::vector<uint32_t>& in_order) {
    cache->begin_tokens(static_cast<uint32_t>(chosen.size()));
    cache->begin_layer(0, ranking, chosen);
    for (const uint32_t index : in_order) cache.use({0, index});
  };
  play({4, 5, 6}, Ranking::recency, {6, 5, 4});
  play({7}, Ranking::recency, {7});
  EXPECT_FALSE(cache.holds({0, 6})) << "acquired first";
  play({5, 4, 7}, Ranking::recency, {7, 4, 5});
  play({1}, Ranking::worth, {1});
  EXPECT_FALSE(cache.holds({0, 5})) << "the first of the prompt's tokens, though acquired last";
  EXPECT_TRUE(cache.holds({0, 4}) && cache.holds({0, 7}) && cache.holds({0, 1}));
}

}  // namespace
}  // namespace sluice
