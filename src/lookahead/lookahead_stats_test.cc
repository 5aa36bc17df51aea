#include "lookahead/lookahead_stats.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace sluice {
namespace {

using enum Whereabouts;
using Ids = std::vector<uint32_t>;
using Picks = std::vector<int32_t>;
using States = std::vector<Whereabouts>;

void predict(LookaheadStats& stats, uint32_t layer, uint32_t distance, const Ids& experts) {
  stats.on_prediction(
      {.layer = layer, .distance = distance, .experts = experts, .router_logits = {}});
}

void expect_sums(const LookaheadCounts& counts, uint64_t open_count) {
  EXPECT_EQ(counts.pick_count, counts.foreseen_count + counts.overlooked_count);
  EXPECT_EQ(counts.miss_count, counts.miss_foreseen_count + counts.miss_overlooked_count);
  EXPECT_EQ(counts.predicted_count, counts.foreseen_count + counts.mistaken_count + open_count);
  EXPECT_LE(counts.miss_foreseen_count, counts.foreseen_count);
  EXPECT_LE(counts.miss_count, counts.pick_count);
}

TEST(LookaheadStats, ComparesEachDistanceByItself) {
  LookaheadStats stats(4, 8);
  predict(stats, 2, 2, {5, 1, 9});
  predict(stats, 2, 1, {5, 6, 7});
  stats.on_routing(2, Picks{5, 6, 1, 0}, States{resident, absent, guessed, absent});

  const LookaheadCounts& near = stats.at(1);
  EXPECT_EQ(near.predicted_count, 3u);
  EXPECT_EQ(near.pick_count, 4u);
  EXPECT_EQ(near.foreseen_count, 2u) << "5 and 6";
  EXPECT_EQ(near.mistaken_count, 1u) << "7";
  EXPECT_EQ(near.miss_count, 3u) << "6, 1 and 0";
  EXPECT_EQ(near.miss_foreseen_count, 1u) << "6";
  EXPECT_DOUBLE_EQ(near.recall(), 0.5);
  EXPECT_DOUBLE_EQ(near.miss_coverage(), 1.0 / 3);

  const LookaheadCounts& far = stats.at(2);
  EXPECT_EQ(far.foreseen_count, 2u) << "5 and 1";
  EXPECT_EQ(far.miss_foreseen_count, 1u) << "1";
  EXPECT_EQ(stats.at(3).pick_count, 0u) << "nothing was predicted from there";

  const LookaheadCounts total = stats.total();
  EXPECT_EQ(total.pick_count, 4u);
  EXPECT_EQ(total.foreseen_count, 3u) << "by any: 5, 6 and 1";
  EXPECT_EQ(total.miss_foreseen_count, 2u);
  EXPECT_EQ(total.predicted_count, 6u);
}

TEST(LookaheadStats, ReadsUnderWayForAnotherReasonAreNoMisses) {
  LookaheadStats stats(1, 2);
  predict(stats, 0, 1, {3, 4});
  stats.on_routing(0, Picks{3, 4}, States{coming, resident});
  EXPECT_EQ(stats.at(1).foreseen_count, 2u);
  EXPECT_EQ(stats.at(1).miss_count, 0u);
  EXPECT_EQ(stats.at(1).miss_coverage(), 0.0);
}

TEST(LookaheadStats, LayersWithoutPredictionCountInTheTotalOnly) {
  LookaheadStats stats(2, 2);
  stats.on_routing(0, Picks{3, 4}, States{absent, resident});
  EXPECT_EQ(stats.at(1).pick_count, 0u);
  EXPECT_EQ(stats.total().pick_count, 2u);
  EXPECT_EQ(stats.total().miss_overlooked_count, 1u);
}

TEST(LookaheadStats, APredictionIsComparedOnce) {
  LookaheadStats stats(2, 2);
  predict(stats, 1, 1, {0, 1});
  stats.on_routing(1, Picks{0}, States{resident});
  stats.on_routing(1, Picks{0}, States{resident});
  EXPECT_EQ(stats.at(1).pick_count, 1u);
  predict(stats, 1, 1, {0, 1});
  predict(stats, 1, 1, {2});
  EXPECT_EQ(stats.at(1).mistaken_count, 1u + 2u) << "replaced before it was compared";
  stats.forget();
  EXPECT_EQ(stats.at(1).mistaken_count, 1u + 2u + 1u);
  stats.on_routing(1, Picks{2}, States{absent});
  EXPECT_EQ(stats.at(1).pick_count, 1u) << "forgotten";
}

TEST(LookaheadStats, TheSumsHoldWhateverHappens) {
  constexpr uint32_t kLayers = 5;
  constexpr uint32_t kExperts = 12;
  Random random(3);
  LookaheadStats stats(kLayers, kExperts);
  const auto distinct_ids = [&](size_t count) {
    Ids ids(kExperts);
    for (uint32_t i = 0; i < kExperts; ++i) ids[i] = i;
    for (size_t i = 0; i < count; ++i) std::swap(ids[i], ids[i + random.below(kExperts - i)]);
    ids.resize(count);
    return ids;
  };
  for (int token = 0; token < 200; ++token) {
    for (uint32_t layer = 0; layer < kLayers; ++layer) {
      for (uint32_t distance = 1; distance <= kDistanceMax; ++distance)
        if (layer >= distance && random.below(3) > 0)
          predict(stats, layer, distance, distinct_ids(random.below(kExperts + 1)));
      if (random.below(10) == 0) continue;  // a layer that is never routed
      const Ids chosen = distinct_ids(1 + random.below(4));
      States states;
      for (size_t i = 0; i < chosen.size(); ++i)
        states.push_back(static_cast<Whereabouts>(random.below(4)));
      stats.on_routing(layer, Picks(chosen.begin(), chosen.end()), states);
    }
  }
  stats.forget();
  LookaheadCounts by_distance;
  for (uint32_t distance = 1; distance <= kDistanceMax; ++distance) {
    expect_sums(stats.at(distance), 0);
    EXPECT_GT(stats.at(distance).miss_foreseen_count, 0u);
    by_distance.predicted_count += stats.at(distance).predicted_count;
  }
  const LookaheadCounts total = stats.total();
  EXPECT_EQ(total.predicted_count, by_distance.predicted_count);
  EXPECT_EQ(total.pick_count, total.foreseen_count + total.overlooked_count);
  EXPECT_EQ(total.miss_count, total.miss_foreseen_count + total.miss_overlooked_count);
}

}  // namespace
}  // namespace sluice
