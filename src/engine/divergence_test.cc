// Values worked out by hand, most over a vocabulary of two tokens.
#include "engine/divergence.h"

#include <gtest/gtest.h>

#include <cmath>

namespace sluice {
namespace {

constexpr double kClose = 1e-6;  // a base has single precision

/// A base of two tokens with probabilities 1/4 and 3/4.
BaseRow one_to_three() {
  static constexpr uint16_t kCodes[] = {0, 1};
  return {.scale = std::log(3.0), .lowest = std::log(0.25), .codes = kCodes};
}

TEST(LogSumExp, IsTheLogarithmOfTheSum) {
  EXPECT_NEAR(log_sum_exp(std::vector<float>{0.0f, std::log(3.0f)}), std::log(4.0), kClose);
  EXPECT_DOUBLE_EQ(log_sum_exp(std::vector<float>{-2.5f}), -2.5);
  EXPECT_DOUBLE_EQ(log_sum_exp(std::vector<float>{1e30f, 0.0f}), 1e30f) << "nothing overflows";
  EXPECT_DOUBLE_EQ(log_sum_exp(std::vector<float>{-1e4f, -1e4f}), -1e4 + std::log(2.0));
}

TEST(Moments, GiveMeanAndStandardError) {
  Moments moments;
  moments.add(1);
  EXPECT_EQ(moments.mean().value, 1);
  EXPECT_EQ(moments.mean().error, 0);
  for (const double value : {2.0, 3.0, 4.0}) moments.add(value);
  EXPECT_EQ(moments.count(), 4u);
  EXPECT_DOUBLE_EQ(moments.mean().value, 2.5);
  EXPECT_DOUBLE_EQ(moments.mean().error, std::sqrt(1.25 / 3));  // squares 30/4, less 2.5²
}

TEST(Estimate, ErrorsGrowWithTheExponential) {
  const Estimate estimate = exp_of({std::log(5.0), 0.1});
  EXPECT_DOUBLE_EQ(estimate.value, 5);
  EXPECT_DOUBLE_EQ(estimate.error, 0.5);
}

TEST(Quantile, LiesBetweenNeighbours) {
  const std::vector<double> sorted{1, 2, 3, 4};
  EXPECT_DOUBLE_EQ(quantile(sorted, 0), 1);
  EXPECT_DOUBLE_EQ(quantile(sorted, 0.5), 2.5);
  EXPECT_DOUBLE_EQ(quantile(sorted, 0.9), 3.7);
  EXPECT_DOUBLE_EQ(quantile(sorted, 1), 4);
  EXPECT_DOUBLE_EQ(quantile(std::vector<double>{7}, 0.99), 7);
}

TEST(Divergence, IsNoneFromTheSameProbabilities) {
  Divergence divergence;
  const std::vector<float> logits{0.0f, std::log(3.0f)};
  for (int i = 0; i < 12; ++i) divergence.add(logits, log_sum_exp(logits), one_to_three(), i % 2);
  const DivergenceReport report = divergence.report();
  EXPECT_NEAR(report.kld.value, 0, kClose);
  EXPECT_NEAR(report.log_ratio.value, 0, kClose);
  EXPECT_NEAR(report.correlation, 1, kClose);
  EXPECT_NEAR(report.delta_p_rms.value, 0, kClose);
  EXPECT_EQ(report.same_top.value, 1);
  EXPECT_NEAR(report.base_perplexity.value, std::sqrt(4.0 * 4.0 / 3.0), kClose);
}

/// Two positions: the model is undecided at the first (1/2, 1/2), and gives 3/4, 1/4 at the second.
TEST(Divergence, OfTwoPositions) {
  Divergence divergence;
  const std::vector<float> undecided{2.0f, 2.0f}, reversed{std::log(3.0f), 0.0f};
  divergence.add(undecided, log_sum_exp(undecided), one_to_three(), 1);
  divergence.add(reversed, log_sum_exp(reversed), one_to_three(), 0);
  const DivergenceReport report = divergence.report();

  const double first = 0.25 * std::log(0.5) + 0.75 * std::log(1.5);       // 0.130812
  const double second = 0.25 * std::log(1.0 / 3) + 0.75 * std::log(3.0);  // 0.549306
  ASSERT_EQ(report.sorted.size(), 2u);
  EXPECT_NEAR(report.sorted[0], first, kClose);
  EXPECT_NEAR(report.sorted[1], second, kClose);
  EXPECT_NEAR(report.kld.value, (first + second) / 2, kClose);
  EXPECT_NEAR(report.kld.error, (second - first) / 2, kClose);

  // nll: ln 2 and ln 4/3; of the base ln 4/3 and ln 4.
  EXPECT_NEAR(report.base_perplexity.value, std::sqrt(16.0 / 3), kClose);
  EXPECT_NEAR(report.log_ratio.value, std::log(std::sqrt(8.0 / 3) / std::sqrt(16.0 / 3)), kClose);
  EXPECT_NEAR(report.correlation, -1, kClose) << "one falls, the other rises";
  EXPECT_NEAR(report.log_ratio.error, std::log(std::sqrt(1.5 * 3)), kClose);

  // The token that followed: 1/2 instead of 3/4, then 3/4 instead of 1/4.
  EXPECT_NEAR(report.delta_p.value, 0.125, kClose);
  EXPECT_NEAR(report.delta_p.error, 0.375, kClose);
  EXPECT_NEAR(report.delta_p_rms.value, std::sqrt((0.0625 + 0.25) / 2), kClose);
  EXPECT_NEAR(report.same_top.value, 0, kClose) << "of equals the first is the top";
}

/// The base cannot tell tokens that far down apart; they do not count.
TEST(Divergence, LeavesOutWhatTheBaseHoldsForImpossible) {
  static constexpr uint16_t kCodes[] = {0, 1, 2};
  const BaseRow base{.scale = 16.5, .lowest = -33, .codes = kCodes};  // −33, −16.5, 0
  const std::vector<float> logits{0.0f, 0.0f, 0.0f};
  Divergence divergence;
  divergence.add(logits, log_sum_exp(logits), base, 2);
  EXPECT_NEAR(divergence.report().kld.value, std::log(3.0), kClose);
}

}  // namespace
}  // namespace sluice
