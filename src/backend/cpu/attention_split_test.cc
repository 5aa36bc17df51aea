#include "backend/cpu/attention_split.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(AttentionSplit, AHeadStaysWholeWhereThereAreHeadsForEveryThread) {
  EXPECT_EQ(plan_query_share(4, 8, 1), 8u);
  EXPECT_EQ(plan_query_share(4, 8, 2), 8u);
  EXPECT_EQ(plan_query_share(4, 8, 4), 8u);
  EXPECT_EQ(plan_query_share(128, 8, 16), 8u) << "a prompt of 512 tokens";
}

TEST(AttentionSplit, IdleThreadsTakeSomeQueries) {
  EXPECT_EQ(plan_query_share(4, 8, 8), 4u);
  EXPECT_EQ(plan_query_share(4, 8, 16), 2u);
  EXPECT_EQ(plan_query_share(4, 8, 32), 1u);
  EXPECT_EQ(plan_query_share(4, 8, 1000), 1u);
  EXPECT_EQ(plan_query_share(4, 8, 3), 4u) << "three rounds of halves in place of two of heads";
  EXPECT_EQ(plan_query_share(4, 8, 6), 8u) << "two rounds of halves are no better";
}

TEST(AttentionSplit, OneQueryIsNeverCut) {
  EXPECT_EQ(plan_query_share(16, 1, 64), 1u);
}

TEST(AttentionSplit, AWindowEndsWithTheQuerysOwnKey) {
  const auto expect = [](size_t window, size_t position, size_t first, size_t block) {
    const VisibleKeys keys = visible_keys(window, position);
    EXPECT_EQ(keys.first, first) << window << " at " << position;
    EXPECT_EQ(keys.block, block) << window << " at " << position;
  };
  expect(0, 1000, 0, 0);
  expect(8, 0, 0, 0);
  expect(8, 7, 0, 0);
  expect(8, 8, 1, 0);
  expect(8, 70, 63, 0);
  expect(8, 71, 64, 64);
  expect(8, 72, 65, 64);
  expect(1, 200, 200, 192);
  expect(128, 1000, 873, 832);
}

TEST(AttentionSplit, AShareNeedNotDivideTheGroup) {
  EXPECT_EQ(plan_query_share(8, 5, 24), 2u) << "2, 2 and 1";
}

}  // namespace
}  // namespace sluice
