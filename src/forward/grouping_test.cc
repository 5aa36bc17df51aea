#include "forward/grouping.h"

#include <gtest/gtest.h>

#include <algorithm>

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

TEST(GroupingDeathTest, MoreThanItWasMadeFor) {
  Grouping grouping(2, 2, 4);
  const std::vector<int32_t> experts(6, 0);
  EXPECT_DEATH(grouping.group(experts, 4), "check failed");
  EXPECT_DEATH(grouping.group(std::span(experts).first(4), 5), "check failed");
}

}  // namespace
}  // namespace sluice
