#include "backend/cpu/router.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/random.h"

namespace sluice {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Choice {
  std::vector<int32_t> experts;
  std::vector<float> weights;
};

Choice choose(const std::vector<float>& scores, size_t used,
              const GatingRule& rule = {.renormalise = false}) {
  Choice choice{std::vector<int32_t>(used), std::vector<float>(used)};
  choose_experts(scores, scores, rule, choice.experts, choice.weights);
  return choice;
}

using Ids = std::vector<int32_t>;
using Weights = std::vector<float>;

TEST(Router, HighestFirst) {
  const Choice choice = choose({0.125f, 0.5f, 0.0625f, 0.25f}, 3);
  EXPECT_EQ(choice.experts, (Ids{1, 3, 0}));
  EXPECT_EQ(choice.weights, (Weights{0.5f, 0.25f, 0.125f}));
}

TEST(Router, TiesGoToTheLowerId) {
  EXPECT_EQ(choose({1, 2, 2, 1, 2}, 4).experts, (Ids{1, 2, 4, 0}));
  EXPECT_EQ(choose(Weights(8, 0.125f), 5).experts, (Ids{0, 1, 2, 3, 4}));
  EXPECT_EQ(choose({0.0f, -0.0f, 0.0f}, 3).experts, (Ids{0, 1, 2})) << "zeros are equal";
}

TEST(Router, RenormalisesThenScales) {
  const Weights scores{0.125f, 0.5f, 0.25f};
  const Choice plain = choose(scores, 2, {.renormalise = true});
  EXPECT_EQ(plain.weights, (Weights{0.5f / 0.75f, 0.25f / 0.75f}));
  const Choice scaled = choose(scores, 2, {.renormalise = true, .scale = 2.5f});
  EXPECT_EQ(scaled.weights, (Weights{0.5f / 0.75f * 2.5f, 0.25f / 0.75f * 2.5f}));
  EXPECT_EQ(choose(scores, 2, {.renormalise = false, .scale = 4.0f}).weights, (Weights{2, 1}));
  EXPECT_EQ(choose({3, 1}, 1, {.renormalise = true}).weights, (Weights{1})) << "one is all";
}

/// A bias decides who is chosen, never with which weight: also where it makes all scores negative.
TEST(Router, WeightsAreScoresWithoutTheBias) {
  const Weights scores{0.5f, 0.25f, 0.125f}, biased{-3.0f, -1.0f, -2.0f};
  Choice choice{Ids(2), Weights(2)};
  choose_experts(scores, biased, {.renormalise = true}, choice.experts, choice.weights);
  EXPECT_EQ(choice.experts, (Ids{1, 2}));
  EXPECT_EQ(choice.weights, (Weights{0.25f / 0.375f, 0.125f / 0.375f}));
}

TEST(Router, WeightsThatVanishStayFinite) {
  EXPECT_EQ(choose({0, 0, 0}, 2, {.renormalise = true}).weights, (Weights{0, 0}));
}

Weights limited(Weights selection, const GatingRule& rule) {
  limit_to_groups(rule, selection);
  return selection;
}

TEST(Router, OnlyTheBestGroupsAreEligible) {
  const Weights scores{9, 0, 5, 5, 4, 4, -1, -1};
  const GatingRule two_of_four{
      .function = GatingFunction::sigmoid, .group_count = 4, .group_used_count = 2};
  EXPECT_EQ(limited(scores, two_of_four),
            (Weights{9, 0, 5, 5, -kInfinity, -kInfinity, -kInfinity, -kInfinity}))
      << "9 + 0 and 5 + 5 are the largest sums of two";
  GatingRule one_of_four{
      .function = GatingFunction::sigmoid, .group_count = 4, .group_used_count = 1};
  EXPECT_EQ(limited(scores, one_of_four)[0], -kInfinity) << "9 + 0 is less than 5 + 5";
  one_of_four.function = GatingFunction::softmax;
  EXPECT_EQ(limited(scores, one_of_four)[0], 9) << "but 9 is more than 5";
  EXPECT_EQ(limited(scores, {}), scores) << "one group is all";
}

TEST(Router, GroupsThatAreEqualGoByNumber) {
  const GatingRule rule{.group_count = 3, .group_used_count = 2};
  EXPECT_EQ(limited(Weights(6, -0.5f), rule),
            (Weights{-0.5f, -0.5f, -0.5f, -0.5f, -kInfinity, -kInfinity}));
}

/// In float, from rank 0 on: 1 + 2^-24 + 2^-24 is 1, the other way round it would be more.
TEST(Router, TheSumIsTakenInRankOrder) {
  const Choice choice = choose({0x1p-24f, 1.0f, 0x1p-24f}, 3, {.renormalise = true});
  EXPECT_EQ(choice.experts, (Ids{1, 0, 2}));
  EXPECT_EQ(choice.weights, (Weights{1.0f, 0x1p-24f, 0x1p-24f}));
}

TEST(Router, AllExpertsMayBeUsed) {
  EXPECT_EQ(choose({-3, -1, -2}, 3).experts, (Ids{1, 2, 0})) << "also with negative scores";
  EXPECT_EQ(choose({7}, 1).experts, (Ids{0}));
}

TEST(Router, IdsAreValidAndDistinctWhateverTheScores) {
  Random random(1);
  for (int round = 0; round < 5000; ++round) {
    const size_t count = 1 + random.below(20);
    const size_t used = 1 + random.below(count);
    Weights scores;
    for (size_t i = 0; i < count; ++i) {
      const std::array strange{kNan, -kNan, kInfinity, -kInfinity, 0.0f, -0.0f};
      scores.push_back(random.below(2) == 0 ? strange[random.below(strange.size())]
                                            : static_cast<float>(random.uniform()));
    }
    Ids experts = choose(scores, used).experts;
    std::ranges::sort(experts);
    ASSERT_EQ(std::ranges::adjacent_find(experts), experts.end());
    ASSERT_GE(experts.front(), 0);
    ASSERT_LT(experts.back(), static_cast<int32_t>(count));
  }
}

TEST(Router, RunnersUpGoOnWhereTheChoiceEnds) {
  const Weights scores{0.125f, 0.5f, 0.5f, 0.25f};
  Ids runners_up(4);
  choose_runners_up(scores, Ids{1, 2}, runners_up);
  EXPECT_EQ(runners_up, (Ids{3, 0, kNoExpert, kNoExpert})) << "no layer has more than it has";
}

TEST(Router, IsAStableSortForNumbers) {
  Random random(2);
  for (int round = 0; round < 3000; ++round) {
    Weights scores(1 + random.below(130));
    for (float& score : scores) score = static_cast<float>(random.below(40)) / 8 - 2;
    const size_t used = 1 + random.below(scores.size());
    Ids order(scores.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, [&](int32_t a, int32_t b) {
      return scores[static_cast<size_t>(a)] > scores[static_cast<size_t>(b)];
    });
    order.resize(used);
    ASSERT_EQ(choose(scores, used).experts, order);
  }
}

}  // namespace
}  // namespace sluice
