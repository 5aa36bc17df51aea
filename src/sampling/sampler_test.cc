#include "sampling/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace sluice {
namespace {

using Logits = std::vector<float>;

/// Everything off: a plain draw from the softmax.
constexpr SamplingOptions kPlain{
    .temperature = 1, .top_k = 0, .top_p = 1, .min_p = 0, .repeat_penalty = 1, .seed = 42};

std::vector<double> frequencies(const Logits& logits, const SamplingOptions& options, int draws,
                                const std::vector<int32_t>& recent = {}) {
  Sampler sampler(options, logits.size());
  std::vector<double> share(logits.size());
  for (int i = 0; i < draws; ++i) share[static_cast<size_t>(sampler.sample(logits, recent))] += 1;
  for (double& count : share) count /= draws;
  return share;
}

/// The shares are those of `weights` (zero: never drawn), within five standard deviations.
void expect_shares(const std::vector<double>& weights, const Logits& logits,
                   const SamplingOptions& options, const std::vector<int32_t>& recent = {}) {
  constexpr int kDraws = 50000;
  double total = 0;
  for (const double weight : weights) total += weight;
  const auto share = frequencies(logits, options, kDraws, recent);
  ASSERT_EQ(weights.size(), share.size());
  for (size_t i = 0; i < weights.size(); ++i) {
    const double p = weights[i] / total;
    if (p == 0) {
      EXPECT_EQ(share[i], 0) << "token " << i << " was filtered out";
    } else {
      EXPECT_NEAR(share[i], p, 5 * std::sqrt(p * (1 - p) / kDraws)) << "token " << i;
    }
  }
}

Logits logarithms(const std::vector<double>& weights) {
  Logits logits;
  for (const double weight : weights) logits.push_back(static_cast<float>(std::log(weight)));
  return logits;
}

int32_t greedy(const Logits& logits, SamplingOptions options = kPlain,
               const std::vector<int32_t>& recent = {}) {
  options.temperature = 0;
  Sampler sampler(options, logits.size());
  return sampler.sample(logits, recent);
}

TEST(Greedy, TakesTheHighestLogitAndTheLowestIdOfEquals) {
  EXPECT_EQ(greedy({1, 3, 2}), 1);
  EXPECT_EQ(greedy({-1, -3, -2}), 0);
  EXPECT_EQ(greedy({0, 7, 5, 7, 7}), 1);
  EXPECT_EQ(greedy({-0.0f, 0.0f}), 0);
  EXPECT_EQ(greedy({4}), 0);
}

TEST(Greedy, IsNotChangedByTheFilters) {
  SamplingOptions options = kPlain;
  options.top_k = 1;
  options.top_p = 0;
  options.min_p = 1;
  EXPECT_EQ(greedy({1, 3, 3}, options), 1);
}

TEST(RepeatPenalty, DividesPositiveAndMultipliesNegativeLogits) {
  SamplingOptions options = kPlain;
  options.repeat_penalty = 1.25f;
  EXPECT_EQ(greedy({1.0f, 0.9f}, options, {0}), 1);
  EXPECT_EQ(greedy({-1.0f, -1.1f}, options, {0}), 1);
  EXPECT_EQ(greedy({-1.0f, -1.3f}, options, {0}), 0);
  options.repeat_penalty = 0.5f;
  EXPECT_EQ(greedy({1.0f, 1.5f}, options, {0}), 0);
}

TEST(RepeatPenalty, CountsATokenOnce) {
  SamplingOptions options = kPlain;
  options.repeat_penalty = 1.25f;
  EXPECT_EQ(greedy({1.0f, 0.7f}, options, {0, 0, 0}), 0);
}

TEST(RepeatPenalty, LooksAtTheLatestTokensOnly) {
  SamplingOptions options = kPlain;
  options.repeat_penalty = 2;
  options.repeat_window = 2;
  EXPECT_EQ(greedy({1.0f, 0.9f, 0, 0}, options, {0, 2, 3}), 0);
  EXPECT_EQ(greedy({1.0f, 0.9f, 0, 0}, options, {2, 0, 3}), 1);
  options.repeat_window = 0;
  EXPECT_EQ(greedy({1.0f, 0.9f, 0, 0}, options, {2, 0, 0}), 0);
}

TEST(RepeatPenalty, IgnoresIdsOutsideTheVocabulary) {
  SamplingOptions options = kPlain;
  options.repeat_penalty = 2;
  EXPECT_EQ(greedy({1.0f, 0.9f}, options, {-1, 2, 1 << 30}), 0);
}

TEST(RepeatPenalty, StaysFinite) {
  const float highest = std::numeric_limits<float>::max();
  SamplingOptions options = kPlain;
  options.repeat_penalty = 0.5f;
  expect_shares({1, 1, 0}, {highest, highest, 0}, options, {0, 1});
  options.repeat_penalty = 2;
  expect_shares({1, 1}, {-highest, -highest}, options, {0, 1});
}

TEST(RepeatPenalty, AppliesBeforeTheDraw) {
  SamplingOptions options = kPlain;
  options.repeat_penalty = 2;
  expect_shares({2, 4, 1}, {std::log(4.0f), std::log(4.0f), 0}, options, {0});
}

TEST(Draw, FollowsTheSoftmax) {
  const std::vector<double> weights{5, 1, 3, 0.5, 10};
  expect_shares(weights, logarithms(weights), kPlain);
}

TEST(Draw, FollowsTheTemperature) {
  SamplingOptions options = kPlain;
  options.temperature = 2;
  expect_shares({1, 2, 3}, logarithms({1, 4, 9}), options);
  options.temperature = 0.5;
  expect_shares({1, 4, 9}, logarithms({1, 2, 3}), options);
}

TEST(Draw, OfEqualLogitsIsTheUniformNumber) {
  Sampler sampler(kPlain, 8);
  Random random(kPlain.seed);
  for (int i = 0; i < 1000; ++i)
    ASSERT_EQ(sampler.sample(Logits(8, -3.5f), {}), static_cast<int32_t>(random.uniform() * 8));
}

TEST(Draw, IsReproducible) {
  const Logits logits = logarithms({1, 2, 3, 4, 5, 6, 7, 8});
  const auto sequence = [&](uint64_t seed) {
    SamplingOptions options;
    options.seed = seed;
    Sampler sampler(options, logits.size());
    std::vector<int32_t> tokens;
    for (int i = 0; i < 40; ++i) tokens.push_back(sampler.sample(logits, tokens));
    return tokens;
  };
  EXPECT_EQ(sequence(1), sequence(1));
  EXPECT_NE(sequence(1), sequence(2));
}

TEST(TopK, KeepsTheLikeliestAndTheLowestIdsOfEquals) {
  SamplingOptions options = kPlain;
  options.top_k = 2;
  expect_shares({0, 3, 0, 0, 5}, logarithms({1, 3, 2, 0.1, 5}), options);
  expect_shares({1, 1, 0, 0}, {2, 2, 2, 2}, options);
  options.top_k = 1;
  expect_shares({0, 1, 0}, {1, 2, 2}, options);
}

TEST(TopK, LargerThanTheVocabularyIsOff) {
  for (const int32_t top_k : {3, 4, std::numeric_limits<int32_t>::max()}) {
    SamplingOptions options = kPlain;
    options.top_k = top_k;
    expect_shares({1, 2, 3}, logarithms({1, 2, 3}), options);
  }
}

TEST(TopP, KeepsTheFewestThatReachTheShare) {
  const std::vector<double> weights{0.15, 0.5, 0.05, 0.3};
  SamplingOptions options = kPlain;
  options.top_p = 0.79f;
  expect_shares({0, 5, 0, 3}, logarithms(weights), options);
  options.top_p = 0.81f;
  expect_shares({1.5, 5, 0, 3}, logarithms(weights), options);
  options.top_p = 0.49f;
  expect_shares({0, 1, 0, 0}, logarithms(weights), options);
  options.top_p = 0;
  expect_shares({0, 1, 0, 0}, logarithms(weights), options);
}

TEST(TopP, SortsBeyondTheFirstChunk) {
  constexpr size_t kCount = 1500;
  SamplingOptions options = kPlain;
  options.top_p = 0.5f;
  const auto share = frequencies(Logits(kCount, 1.0f), options, 10000);
  for (size_t i = 0; i < kCount; ++i) EXPECT_EQ(share[i] == 0, i >= kCount / 2) << i;
}

TEST(MinP, DropsWhatIsTooFarBelowTheLikeliest) {
  const std::vector<double> weights{0.15, 0.5, 0.05, 0.3};
  SamplingOptions options = kPlain;
  options.min_p = 0.59f;
  expect_shares({0, 5, 0, 3}, logarithms(weights), options);
  options.min_p = 0.61f;
  expect_shares({0, 1, 0, 0}, logarithms(weights), options);
  options.min_p = 1;
  expect_shares({0, 1, 0, 1}, {1, 2, 0, 2}, options);
}

TEST(Filters, WorkTogether) {
  // Top-k keeps 40, 30, 20 and 6; top-p measures its share of those 96: 40 + 30 < 0.8 · 96; min-p
  // then asks for 0.55 · 40 = 22.
  const std::vector<double> weights{4, 20, 6, 40, 30};
  SamplingOptions options = kPlain;
  options.top_k = 4;
  options.top_p = 0.8f;
  expect_shares({0, 2, 0, 4, 3}, logarithms(weights), options);
  options.min_p = 0.55f;
  expect_shares({0, 0, 0, 4, 3}, logarithms(weights), options);
}

TEST(Filters, MeasureTopPBeforeMinP) {
  // 30 is half of all 60, so top-p stops there, although it is more than half of what min-p keeps.
  SamplingOptions options = kPlain;
  options.min_p = 0.5f;
  options.top_p = 0.55f;
  expect_shares({30, 16, 0, 0}, logarithms({30, 16, 10, 4}), options);
}

TEST(Extremes, OneHugeLogit) {
  const float highest = std::numeric_limits<float>::max();
  expect_shares({0, 1, 0}, {0, highest, -highest}, kPlain);
  expect_shares({0, 1, 0}, {0, highest, -highest}, SamplingOptions{});
  expect_shares({0, 1, 0}, {-200, 0, -1e30f}, kPlain);
}

TEST(Extremes, TinyAndHugeTemperatures) {
  SamplingOptions options = kPlain;
  options.temperature = std::numeric_limits<float>::denorm_min();
  expect_shares({0, 1, 0, 1}, {1, 2, 0, 2}, options);
  options.temperature = std::numeric_limits<float>::max();
  expect_shares({1, 1, 1, 1}, {1, 2, 0, -9}, options);
}

TEST(Extremes, RandomOptionsNeverDrawWhatTheFiltersDrop) {
  Random random(7);
  for (int round = 0; round < 2000; ++round) {
    Logits logits(1 + random.below(50));
    for (float& logit : logits) logit = static_cast<float>(random.uniform() * 20 - 10);
    SamplingOptions options = kPlain;
    options.temperature = static_cast<float>(0.1 + random.uniform() * 3);
    options.top_k = static_cast<int32_t>(random.below(60));
    options.min_p = static_cast<float>(random.uniform());
    options.seed = random.next();
    Sampler sampler(options, logits.size());
    const auto drawn = static_cast<size_t>(sampler.sample(logits, {}));
    ASSERT_LT(drawn, logits.size());
    int above = 0;
    float highest = logits[0];
    for (const float logit : logits) {
      above += logit > logits[drawn] ? 1 : 0;
      highest = std::max(highest, logit);
    }
    ASSERT_TRUE(options.top_k == 0 || above < options.top_k);
    const double ratio = std::exp((double{logits[drawn]} - highest) / options.temperature);
    ASSERT_GE(ratio, options.min_p - 1e-5);
  }
}

TEST(CheckSampling, NamesTheOption) {
  EXPECT_TRUE(check_sampling({}).ok());
  EXPECT_TRUE(check_sampling(kPlain).ok());
  const auto message = [](auto change) {
    SamplingOptions options;
    change(options);
    const Status status = check_sampling(options);
    return status.ok() ? std::string() : status.error().message;
  };
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float bad : {-0.1f, nan, infinity, -infinity}) {
    EXPECT_NE(message([&](auto& o) { o.temperature = bad; }).find("temperature"),
              std::string::npos);
    EXPECT_NE(message([&](auto& o) { o.top_p = bad; }).find("top-p"), std::string::npos);
    EXPECT_NE(message([&](auto& o) { o.min_p = bad; }).find("min-p"), std::string::npos);
    EXPECT_NE(message([&](auto& o) { o.repeat_penalty = bad; }).find("repeat-penalty"),
              std::string::npos);
  }
  EXPECT_NE(message([](auto& o) { o.repeat_penalty = 0; }).find("repeat-penalty"),
            std::string::npos);
  EXPECT_NE(message([](auto& o) { o.top_p = 1.01f; }).find("top-p"), std::string::npos);
  EXPECT_NE(message([](auto& o) { o.top_k = -1; }).find("top-k"), std::string::npos);
}

}  // namespace
}  // namespace sluice
