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

TEST(AttentionSplit, AShareNeedNotDivideTheGroup) {
  EXPECT_EQ(plan_query_share(8, 5, 24), 2u) << "2, 2 and 1";
}

}  // namespace
}  // namespace sluice
