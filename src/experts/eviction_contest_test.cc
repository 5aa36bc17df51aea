#include "experts/eviction_contest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/random.h"

namespace sluice {
namespace {

using Order = EvictionContest::Order;
using Ids = std::vector<uint16_t>;

// The forecast -------------------------------------------------------------------------------

TEST(UseForecast, TheLastUsedAndOfATokenTheStrongestIsTheMostRecent) {
  UseForecast forecast(6, 2);
  forecast.on_token(Ids{4, 2});
  forecast.on_token(Ids{1, 2});
  EXPECT_TRUE(forecast.is_chosen(1));
  EXPECT_TRUE(forecast.is_chosen(2));
  EXPECT_FALSE(forecast.is_chosen(4));
  EXPECT_TRUE(forecast.leaves_before(Order::recency, 4, 2));
  EXPECT_TRUE(forecast.leaves_before(Order::recency, 2, 1)) << "the stronger stays";
  EXPECT_TRUE(forecast.leaves_before(Order::recency, 0, 4)) << "never used";
  EXPECT_TRUE(forecast.leaves_before(Order::recency, 0, 3)) << "ties: the lower id";
  EXPECT_FALSE(forecast.leaves_before(Order::recency, 3, 0));
}

TEST(UseForecast, RatesMoveASixteenthOfTheWayEachToken) {
  UseForecast forecast(4, 1);
  double rate = 0;
  for (int token = 0; token < 40; ++token) {
    const bool used = token % 3 == 0;
    forecast.on_token(Ids{static_cast<uint16_t>(used ? 1 : 2)});
    rate += ((used ? 1 : 0) - rate) / 16;
  }
  forecast.rank_experts();
  EXPECT_NEAR(forecast.worth(Order::decay, 1) / double(1 << 24), rate, 1e-5);
  EXPECT_NEAR(forecast.worth(Order::decay, 2) / double(1 << 24), 1 - rate, 0.1);
  EXPECT_EQ(forecast.worth(Order::decay, 3), 0u);
}

TEST(UseForecast, LearnsWhatFollows) {
  UseForecast forecast(8, 1);
  const uint16_t cycle[] = {5, 0, 7, 3};
  for (int token = 0; token < 400; ++token) forecast.on_token(Ids{cycle[token % 4]});
  forecast.on_token(Ids{5});
  forecast.rank_experts();
  for (uint32_t expert = 0; expert < 8; ++expert) {
    if (expert == 0) continue;
    EXPECT_TRUE(forecast.leaves_before(Order::steady, expert, 0)) << "0 follows 5";
  }
}

TEST(UseForecast, NothingOverflowsWhereOneSetIsChosenForEver) {
  constexpr uint32_t kUsed = UseForecast::kUsedCountMax;
  UseForecast forecast(kUsed + 1, kUsed);
  Ids ids;
  for (uint16_t id = 0; id < kUsed; ++id) ids.push_back(id);
  for (int token = 0; token < 3000; ++token) forecast.on_token(ids);
  forecast.rank_experts();
  for (const Order order : {Order::decay, Order::brief, Order::steady}) {
    for (uint32_t id = 0; id < kUsed; ++id) {
      EXPECT_TRUE(forecast.leaves_before(order, kUsed, id));
      EXPECT_EQ(forecast.worth(order, id), forecast.worth(order, 0));
    }
  }
}

// The contest --------------------------------------------------------------------------------

/// Whether `a` should leave rather than `b`.
bool leaves_before(const EvictionContest& contest, ExpertId a, ExpertId b) {
  std::vector<LeaveKey> of_a(64), of_b(64);
  contest.write_keys(a.layer, of_a);
  contest.write_keys(b.layer, of_b);
  if (of_a[a.index] == of_b[b.index]) return a.index < b.index;
  return of_a[a.index] < of_b[b.index];
}

/// A layer's cache that evicts as the contest says; counts its misses.
class Cache {
 public:
  Cache(uint32_t expert_count, uint32_t slot_count, uint32_t used_count)
      : contest_({{expert_count, slot_count}}, used_count), slot_count_(slot_count) {}

  void use(const Ids& ids) {
    contest_.begin_token();
    contest_.on_routing(0, ids);
    for (const uint16_t id : ids) {
      if (here_.contains(id)) continue;
      ++misses_;
      if (here_.size() == slot_count_) here_.erase(victim(ids));
      here_.insert(id);
    }
  }
  uint64_t misses() const { return misses_; }
  const EvictionContest& contest() const { return contest_; }

 private:
  uint16_t victim(const Ids& ids) const {
    const uint16_t* victim = nullptr;
    for (const uint16_t& id : here_) {
      if (std::ranges::find(ids, id) != ids.end()) continue;
      if (victim == nullptr || leaves_before(contest_, {0, id}, {0, *victim})) victim = &id;
    }
    return *victim;
  }

  EvictionContest contest_;
  size_t slot_count_;
  std::set<uint16_t> here_;
  uint64_t misses_ = 0;
};

/// LRU, told independently: a list, the most recent in front.
uint64_t lru_misses(const std::vector<Ids>& tokens, size_t slot_count) {
  std::vector<uint16_t> list;
  uint64_t misses = 0;
  for (const Ids& ids : tokens) {
    for (const uint16_t id : ids) misses += std::ranges::find(list, id) == list.end();
    for (size_t i = ids.size(); i-- > 0;) {
      std::erase(list, ids[i]);
      list.insert(list.begin(), ids[i]);
    }
    if (list.size() > slot_count) list.resize(slot_count);
  }
  return misses;
}

uint64_t contest_misses(const std::vector<Ids>& tokens, uint32_t expert_count,
                        uint32_t slot_count) {
  Cache cache(expert_count, slot_count, static_cast<uint32_t>(tokens.front().size()));
  for (const Ids& ids : tokens) cache.use(ids);
  return cache.misses();
}

/// Two of 32 experts a token, weighted; what is liked changes every `topic_tokens`.
std::vector<Ids> topical(uint64_t seed, size_t topic_tokens, double skew) {
  Random random(seed);
  std::vector<Ids> tokens;
  std::vector<double> weight(32, 1);
  for (size_t token = 0; token < 4000; ++token) {
    if (token % topic_tokens == 0)
      for (double& w : weight) w = random.uniform() < 0.2 ? skew : 1;
    Ids ids;
    while (ids.size() < 2) {
      const auto id = static_cast<uint16_t>(random.below(32));
      if (std::ranges::find(ids, id) == ids.end() && random.uniform() * skew < weight[id])
        ids.push_back(id);
    }
    tokens.push_back(ids);
  }
  return tokens;
}

TEST(EvictionContest, BeatsLruWhereUseIsSkewed) {
  const auto tokens = topical(1, 100000, 10);
  const double ratio = double(contest_misses(tokens, 32, 8)) / double(lru_misses(tokens, 8));
  EXPECT_LT(ratio, 0.85);
}

/// Within a hundredth, and what chance makes of few misses: ties are broken otherwise.
TEST(EvictionContest, IsNeverMuchWorseThanLru) {
  for (const size_t topic_tokens : {5, 20, 80, 500}) {
    const auto tokens = topical(topic_tokens, topic_tokens, 30);
    for (const uint32_t slot_count : {3u, 6u, 12u, 24u, 31u}) {
      const auto lru = static_cast<double>(lru_misses(tokens, slot_count));
      EXPECT_LE(double(contest_misses(tokens, 32, slot_count)), 1.01 * lru + std::sqrt(lru))
          << topic_tokens << " tokens a topic, " << slot_count << " slots";
    }
  }
}

TEST(EvictionContest, FollowsACycleThatLruNeverHits) {
  std::vector<Ids> tokens;
  for (uint16_t token = 0; token < 3000; ++token)
    tokens.push_back({static_cast<uint16_t>(token % 10)});
  EXPECT_EQ(lru_misses(tokens, 9), 3000u);
  EXPECT_LT(contest_misses(tokens, 16, 9), 1600u);
}

TEST(EvictionContest, RecencyLeadsUntilAnotherIsAheadByMoreThanChance) {
  Cache cache(32, 8, 2);
  EXPECT_EQ(cache.contest().leader(), Order::recency);
  for (const Ids& ids : topical(2, 100000, 10)) cache.use(ids);
  EXPECT_NE(cache.contest().leader(), Order::recency);
}

TEST(EvictionContest, GoldenMisses) {
  EXPECT_EQ(contest_misses(topical(3, 300, 10), 32, 8), 2862u)
      << "integers only: every machine and build decides alike";
}

TEST(EvictionContest, PromptsTeachWithoutTakingPart) {
  EvictionContest contest({{8, 2}}, 1);
  Ids prompt(128, 3);
  prompt.back() = 5;
  contest.on_prompt_routing(0, 872, prompt);
  contest.begin_token();
  EXPECT_EQ(contest.leader(), Order::recency);
  EXPECT_TRUE(leaves_before(contest, {0, 3}, {0, 5}));
  EXPECT_TRUE(leaves_before(contest, {0, 1}, {0, 3}));
}

TEST(EvictionContest, AmongLayersTheOneWhoseTurnIsFarthestLosesFirst) {
  EvictionContest contest({{4, 1}, {4, 1}, {4, 1}}, 1);
  contest.begin_token();
  for (uint32_t layer = 0; layer < 3; ++layer) contest.on_routing(layer, Ids{0});
  EXPECT_TRUE(leaves_before(contest, {2, 0}, {1, 0})) << "layer 2 has just run";
  EXPECT_TRUE(leaves_before(contest, {1, 0}, {0, 0}));
  EXPECT_TRUE(leaves_before(contest, {0, 1}, {2, 0})) << "never used";
}

TEST(EvictionContest, LayersWithRoomForAllCostNothing) {
  EXPECT_EQ(EvictionContest::bytes_for({{64, 64}, {0, 0}}), 0u);
  EXPECT_GE(EvictionContest::bytes_for({{64, 8}}), 64u * 64 * 2);
  EvictionContest contest({{64, 64}, {0, 0}}, 2);
  contest.on_routing(0, Ids{1, 2});
  contest.begin_token();
}

}  // namespace
}  // namespace sluice
