#include "experts/eviction.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/random.h"

namespace sluice {
namespace {

/// Decay as one would write it down: every use is kept, and its weight is halved for each half-life
/// that has passed since.
class NaiveDecay {
 public:
  NaiveDecay(uint32_t expert_total, uint32_t half_life)
      : half_life_(half_life), uses_(expert_total) {}

  void on_tokens(uint32_t count) { now_ += count; }
  void on_use(uint32_t expert, double weight) {
    uses_[expert].push_back({now_, weight, ++use_count_});
  }

  long double worth(uint32_t expert) const {
    long double sum = 0;
    for (const Use& use : uses_[expert])
      sum += use.weight * std::exp2(-static_cast<long double>(now_ - use.time) /
                                    static_cast<long double>(half_life_));
    return sum;
  }
  uint64_t last_use(uint32_t expert) const {
    return uses_[expert].empty() ? 0 : uses_[expert].back().number;
  }

  /// By recency alone.
  bool is_older(uint32_t a, uint32_t b) const {
    return last_use(a) != last_use(b) ? last_use(a) < last_use(b) : a < b;
  }

 private:
  struct Use {
    uint64_t time;
    double weight;
    uint64_t number;
  };
  const uint32_t half_life_;
  std::vector<std::vector<Use>> uses_;
  uint64_t now_ = 0;
  uint64_t use_count_ = 0;
};

/// Experts in the order in which they would leave.
std::vector<uint32_t> order_of_leaving(const EvictionPolicy& policy, uint32_t count,
                                       Ranking ranking) {
  std::vector<uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::sort(order,
                    [&](uint32_t a, uint32_t b) { return policy.leaves_before(a, b, ranking); });
  return order;
}

TEST(LruPolicy, TheLongestUnusedLeavesFirstThenTheLowerId) {
  LruPolicy policy(6);
  for (const uint32_t expert : {4, 1, 3, 4}) policy.on_use(expert, 1);
  for (const Ranking ranking : {Ranking::recency, Ranking::worth})
    EXPECT_EQ(order_of_leaving(policy, 6, ranking), (std::vector<uint32_t>{0, 2, 5, 1, 3, 4}));
}

TEST(LruPolicy, NeitherTimeNorWeightMatters) {
  LruPolicy policy(3);
  policy.on_use(0, 1000);
  policy.on_tokens(5000);
  policy.on_use(1, 0.001);
  EXPECT_TRUE(policy.leaves_before(0, 1, Ranking::worth));
  EXPECT_FALSE(policy.leaves_before(1, 0, Ranking::worth));
}

TEST(DecayPolicy, AUseCountsHalfAfterAHalfLife) {
  DecayPolicy policy(3, 64);
  policy.on_tokens(1);
  policy.on_use(0, 1);
  policy.on_use(0, 1);
  policy.on_use(0, 1);
  policy.on_tokens(64);  // 0 has 1.5 left
  policy.on_use(1, 1);
  EXPECT_TRUE(policy.leaves_before(1, 0, Ranking::worth)) << "1 against 1.5";
  policy.on_tokens(64);  // 0.75 and 0.5
  policy.on_use(2, 0.6);
  EXPECT_EQ(order_of_leaving(policy, 3, Ranking::worth), (std::vector<uint32_t>{1, 2, 0}));
}

TEST(DecayPolicy, EqualWorthsLeaveByRecencyThenById) {
  DecayPolicy policy(5, 64);
  policy.on_tokens(1);
  policy.on_use(1, 1);
  policy.on_use(1, 1);
  policy.on_tokens(64);
  for (const uint32_t expert : {3, 0}) policy.on_use(expert, 1);  // as much as 1 has left
  EXPECT_EQ(order_of_leaving(policy, 5, Ranking::worth), (std::vector<uint32_t>{2, 4, 1, 3, 0}));
}

/// A prompt wants each of its experts once a batch, so how often it was used says nothing.
TEST(DecayPolicy, IsLruWhileAPromptGoesOn) {
  DecayPolicy policy(3, 64);
  policy.on_tokens(512);
  policy.on_use(0, 100);
  policy.on_use(1, 10);
  policy.on_use(2, 1);
  EXPECT_EQ(order_of_leaving(policy, 3, Ranking::recency), (std::vector<uint32_t>{0, 1, 2}));
  EXPECT_EQ(order_of_leaving(policy, 3, Ranking::worth), (std::vector<uint32_t>{2, 1, 0}));
}

TEST(DecayPolicy, APromptAgesTheCountsByItsTokens) {
  DecayPolicy policy(2, 64);
  policy.on_tokens(1);
  for (int i = 0; i < 200; ++i) policy.on_use(0, 1);
  policy.on_tokens(512);  // 8 half-lives: 200 / 256
  policy.on_use(1, 1);
  EXPECT_TRUE(policy.leaves_before(0, 1, Ranking::worth));
}

struct Pace {
  uint32_t half_life;
  uint64_t batch_tokens_max;
};

class DecayAgainstHalving : public ::testing::TestWithParam<Pace> {};

/// Also over more half-lives than a double has powers of two, and at a pace that outruns them all.
TEST_P(DecayAgainstHalving, RanksAsRealHalvingDoes) {
  constexpr uint32_t kExperts = 12;
  const auto [half_life, batch_tokens_max] = GetParam();
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    DecayPolicy policy(kExperts, half_life);
    NaiveDecay naive(kExperts, half_life);
    for (int step = 0; step < 600; ++step) {
      const auto tokens =
          static_cast<uint32_t>(random.below(10) == 0 ? 1 + random.below(batch_tokens_max) : 1);
      policy.on_tokens(tokens);
      naive.on_tokens(tokens);
      for (uint64_t uses = random.below(4); uses > 0; --uses) {
        // The lower half of the experts is used more often.
        const auto expert = static_cast<uint32_t>(random.below(1 + random.below(kExperts)));
        const double weight = random.below(2) == 0 ? 1 : random.uniform() + 0.001;
        policy.on_use(expert, weight);
        naive.on_use(expert, weight);
      }
      if (step % 7 != 0) continue;
      std::vector<long double> worths;
      for (uint32_t expert = 0; expert < kExperts; ++expert) worths.push_back(naive.worth(expert));
      for (uint32_t a = 0; a < kExperts; ++a)
        for (uint32_t b = 0; b < kExperts; ++b) {
          if (a == b) continue;
          ASSERT_EQ(policy.leaves_before(a, b, Ranking::recency), naive.is_older(a, b));
          const long double apart = std::abs(worths[a] - worths[b]);
          const long double larger = std::max(worths[a], worths[b]);
          // What rounding may turn around is nothing to rank by; nor is what no double holds.
          const bool leaves = policy.leaves_before(a, b, Ranking::worth);
          if (larger == 0) {
            ASSERT_EQ(leaves, naive.is_older(a, b));
          } else if (larger > 1e-250L && apart > 1e-12L * larger) {
            ASSERT_EQ(leaves, worths[a] < worths[b]) << "step " << step << ": " << a << ", " << b;
          }
        }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Paces, DecayAgainstHalving,
                         ::testing::Values(Pace{64, 1}, Pace{64, 600}, Pace{64, 20'000}, Pace{1, 1},
                                           Pace{1, 40}, Pace{3, 900}));

/// The order must be strict at any time, whatever rescaling does to small numbers.
TEST(DecayPolicy, TheOrderIsStrictAfterThousandsOfHalfLives) {
  DecayPolicy policy(8, 2);
  Random random(5);
  for (int round = 0; round < 40; ++round) {
    policy.on_tokens(static_cast<uint32_t>(1 + random.below(700)));
    policy.on_use(static_cast<uint32_t>(random.below(8)), 1);
    const std::vector<uint32_t> order = order_of_leaving(policy, 8, Ranking::worth);
    for (size_t i = 0; i < order.size(); ++i)
      for (size_t j = 0; j < order.size(); ++j)
        ASSERT_EQ(policy.leaves_before(order[i], order[j], Ranking::worth), i < j);
  }
}

/// An old favourite must not come back: what was used last outlives what was used much, long ago.
TEST(DecayPolicy, RescalingForgetsWhatIsLongGone) {
  DecayPolicy policy(3, 64);
  policy.on_tokens(1);
  for (int i = 0; i < 100'000; ++i) policy.on_use(0, 1);
  for (int i = 0; i < 1000; ++i) policy.on_tokens(64);
  policy.on_use(1, 0.5);
  policy.on_tokens(64 * 300);  // beyond one rescaling
  policy.on_use(2, 1e-3);
  EXPECT_EQ(order_of_leaving(policy, 3, Ranking::worth), (std::vector<uint32_t>{0, 1, 2}));
}

}  // namespace
}  // namespace sluice
