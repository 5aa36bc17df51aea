#include "forward/grouping.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/random.h"

namespace sluice {
namespace {

TEST(Grouping, AnExampleByHand) {
  Grouping grouping(3, 2, 5);
  const std::vector<int32_t> experts{4, 1,   // token 0
                                     1, 3,   // token 1
                                     4, 0};  // token 2
  grouping.group(experts, 5);
  const auto groups = grouping.groups();
  ASSERT_EQ(groups.size(), 4u);
  const std::vector<std::array<uint32_t, 3>> expected{{0, 0, 1}, {1, 1, 2}, {3, 3, 1}, {4, 4, 2}};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(groups[i].expert, expected[i][0]);
    EXPECT_EQ(groups[i].first_pair, expected[i][1]);
    EXPECT_EQ(groups[i].token_count, expected[i][2]);
  }
  const std::vector<int32_t> token_of_pair(grouping.token_of_pair(), grouping.token_of_pair() + 6);
  EXPECT_EQ(token_of_pair, (std::vector<int32_t>{2, 0, 1, 1, 0, 2}));
  const std::vector<int32_t> pair_of(grouping.pair_of(), grouping.pair_of() + 6);
  EXPECT_EQ(pair_of, (std::vector<int32_t>{4, 1, 2, 3, 5, 0}));
}

TEST(Grouping, KeepsEveryPairOnceForRandomRoutings) {
  constexpr size_t kTokens = 40, kUsed = 3, kExperts = 11;
  Grouping grouping(kTokens, kUsed, kExperts);
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    Random random(seed);
    const size_t tokens = 1 + random.below(kTokens);
    const size_t experts = kUsed + random.below(kExperts - kUsed + 1);
    std::vector<int32_t> routing;
    for (size_t token = 0; token < tokens; ++token) {
      std::vector<int32_t> ids(experts);
      for (size_t i = 0; i < experts; ++i) ids[i] = static_cast<int32_t>(i);
      for (size_t rank = 0; rank < kUsed; ++rank) {
        std::swap(ids[rank], ids[rank + random.below(experts - rank)]);
        routing.push_back(ids[rank]);
      }
    }
    grouping.group(routing, experts);
    uint32_t next_pair = 0, last_expert = 0;
    for (const ExpertGroup& group : grouping.groups()) {
      ASSERT_TRUE(next_pair == 0 || group.expert > last_expert) << "ascending";
      last_expert = group.expert;
      ASSERT_EQ(group.first_pair, next_pair) << "without gaps";
      ASSERT_EQ(group.token_count, std::ranges::count(routing, static_cast<int32_t>(group.expert)));
      next_pair += group.token_count;
      for (uint32_t pair = group.first_pair; pair < next_pair; ++pair) {
        const auto token = static_cast<size_t>(grouping.token_of_pair()[pair]);
        ASSERT_TRUE(pair == group.first_pair ||
                    grouping.token_of_pair()[pair - 1] < grouping.token_of_pair()[pair]);
        const auto chosen = std::span(routing).subspan(token * kUsed, kUsed);
        const auto place = std::ranges::find(chosen, static_cast<int32_t>(group.expert));
        ASSERT_NE(place, chosen.end());
        const auto rank = static_cast<size_t>(place - chosen.begin());
        ASSERT_EQ(grouping.pair_of()[token * kUsed + rank], static_cast<int32_t>(pair));
      }
    }
    ASSERT_EQ(next_pair, tokens * kUsed);
  }
}

TEST(Grouping, ATokenCountsHalfAsMuch128TokensLater) {
  Grouping grouping(300, 1, 3);
  std::vector<int32_t> experts(257, 2);
  experts.front() = 0;  // 256 tokens behind it
  experts[128] = 1;     // 128 tokens behind it
  grouping.group(experts, 3);
  EXPECT_NEAR(grouping.groups()[0].recency, 0.25, 1e-12);
  EXPECT_NEAR(grouping.groups()[1].recency, 0.5, 1e-12);
  grouping.group(experts, 3, 128);
  EXPECT_NEAR(grouping.groups()[0].recency, 0.125, 1e-12);
  grouping.group(std::span(experts).first(1), 3);
  EXPECT_EQ(grouping.groups()[0].recency, 1.0) << "a single token counts as one use";
}

/// Cut in pieces or not: the weights of a prompt add up to the same.
TEST(Grouping, RecencyIsTheSumOverTokensHoweverTheyAreCut) {
  constexpr size_t kTokens = 700, kUsed = 4, kExperts = 20;
  Random random(9);
  std::vector<int32_t> experts(kTokens * kUsed);
  for (size_t i = 0; i < experts.size(); ++i)
    experts[i] = static_cast<int32_t>((i % kUsed) * 5 + random.below(5));
  std::vector<double> expected(kExperts), counted(kExperts);
  for (size_t i = 0; i < experts.size(); ++i)
    expected[static_cast<size_t>(experts[i])] +=
        std::exp2(-static_cast<double>(kTokens - 1 - i / kUsed) / 128);
  Grouping grouping(kTokens, kUsed, kExperts);
  for (const size_t piece : {size_t{1}, size_t{33}, size_t{512}, kTokens}) {
    std::ranges::fill(counted, 0.0);
    for (size_t first = 0; first < kTokens; first += piece) {
      const size_t count = std::min(piece, kTokens - first);
      grouping.group(std::span(experts).subspan(first * kUsed, count * kUsed), kExperts,
                     kTokens - first - count);
      for (const ExpertGroup& group : grouping.groups()) counted[group.expert] += group.recency;
    }
    for (size_t expert = 0; expert < kExperts; ++expert)
      EXPECT_NEAR(counted[expert], expected[expert], 1e-10 * expected[expert]) << expert;
  }
}

TEST(GroupingDeathTest, MoreThanItWasMadeFor) {
  Grouping grouping(2, 2, 4);
  const std::vector<int32_t> experts(6, 0);
  EXPECT_DEATH(grouping.group(experts, 4), "check failed");
  EXPECT_DEATH(grouping.group(std::span(experts).first(4), 5), "check failed");
}

}  // namespace
}  // namespace sluice
