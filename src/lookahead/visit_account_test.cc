#include "lookahead/visit_account.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

constexpr double kUsualNs = 1000;

TEST(VisitAccount, OpensWithAStepAndHoldsFour) {
  VisitAccount account;
  EXPECT_TRUE(account.is_empty());
  account.open(kUsualNs);
  account.pay(kUsualNs);
  EXPECT_TRUE(account.is_empty());
  EXPECT_FALSE(account.is_overdrawn());

  account.earn(100 * kUsualNs, kUsualNs);
  account.pay(4 * kUsualNs - 1);
  EXPECT_FALSE(account.is_empty());
  account.pay(2);
  EXPECT_TRUE(account.is_overdrawn());
}

TEST(VisitAccount, AFasterVisitPaysBack) {
  VisitAccount account;
  account.open(kUsualNs);
  account.pay(2 * kUsualNs);
  account.pay(-1.5 * kUsualNs);
  EXPECT_TRUE(account.bears(0.5 * kUsualNs, kUsualNs));
  EXPECT_FALSE(account.bears(0.6 * kUsualNs, kUsualNs));
}

TEST(VisitAccount, AFullOneBearsAnyPriceAndAnEmptyOneNone) {
  VisitAccount account;
  account.open(kUsualNs);
  account.earn(3 * kUsualNs, kUsualNs);
  EXPECT_TRUE(account.bears(1000 * kUsualNs, kUsualNs));
  account.pay(3.7 * kUsualNs);
  EXPECT_FALSE(account.is_empty());
  EXPECT_FALSE(account.bears(0, kUsualNs));
}

TEST(VisitAccount, TheMoreIsWonTheMoreIsSpentOnTryingWithinBounds) {
  EXPECT_DOUBLE_EQ(VisitAccount::share_of(-0.5), 0.006);
  EXPECT_DOUBLE_EQ(VisitAccount::share_of(0.05), 0.006);
  EXPECT_DOUBLE_EQ(VisitAccount::share_of(0.15), 0.009);
  EXPECT_DOUBLE_EQ(VisitAccount::share_of(0.5), VisitAccount::kShareWhileOff);
}

}  // namespace
}  // namespace sluice
