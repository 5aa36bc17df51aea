#include "lookahead/lookahead_stats.h"

#include <algorithm>

namespace sluice {
namespace {

bool is_miss(Whereabouts state) {
  return state == Whereabouts::guessed || state == Whereabouts::absent;
}

void count_pick(LookaheadCounts& counts, Whereabouts state, bool foreseen) {
  ++counts.pick_count;
  ++(foreseen ? counts.foreseen_count : counts.overlooked_count);
  if (!is_miss(state)) return;
  ++counts.miss_count;
  ++(foreseen ? counts.miss_foreseen_count : counts.miss_overlooked_count);
}

}  // namespace

LookaheadStats::LookaheadStats(size_t layer_count, uint32_t width_max)
    : width_max_(width_max),
      experts_(layer_count * kDistanceMax * width_max),
      named_count_(layer_count * kDistanceMax) {}

void LookaheadStats::on_prediction(const Prediction& prediction) {
  CHECK(prediction.experts.size() <= width_max_);
  LookaheadCounts& counts = counts_[prediction.distance];
  const size_t index = index_of(prediction.layer, prediction.distance);
  counts.mistaken_count += named_count_[index];
  counts.predicted_count += prediction.experts.size();
  std::ranges::copy(prediction.experts, experts_.begin() + index * width_max_);
  named_count_[index] = static_cast<uint32_t>(prediction.experts.size());
}

void LookaheadStats::on_routing(uint32_t layer, std::span<const int32_t> experts,
                                std::span<const Whereabouts> states) {
  CHECK(experts.size() == states.size());
  for (size_t i = 0; i < experts.size(); ++i) {
    bool by_any = false;
    for (uint32_t distance = 1; distance <= kDistanceMax; ++distance) {
      const auto guesses = named(layer, distance);
      if (guesses.empty()) continue;
      const bool foreseen =
          std::ranges::find(guesses, static_cast<uint32_t>(experts[i])) != guesses.end();
      count_pick(counts_[distance], states[i], foreseen);
      by_any |= foreseen;
    }
    count_pick(counts_[0], states[i], by_any);
  }
  for (uint32_t distance = 1; distance <= kDistanceMax; ++distance) {
    const auto guesses = named(layer, distance);
    counts_[distance].mistaken_count +=
        guesses.size() - static_cast<size_t>(std::ranges::count_if(guesses, [&](uint32_t guess) {
          return std::ranges::find(experts, static_cast<int32_t>(guess)) != experts.end();
        }));
    named_count_[index_of(layer, distance)] = 0;
  }
}

void LookaheadStats::forget() {
  for (size_t index = 0; index < named_count_.size(); ++index) {
    counts_[index % kDistanceMax + 1].mistaken_count += named_count_[index];
    named_count_[index] = 0;
  }
}

LookaheadCounts LookaheadStats::total() const {
  LookaheadCounts total = counts_[0];
  for (uint32_t distance = 1; distance <= kDistanceMax; ++distance) {
    const LookaheadCounts& counts = counts_[distance];
    total.predicted_count += counts.predicted_count;
    total.mistaken_count += counts.mistaken_count;
  }
  return total;
}

}  // namespace sluice
