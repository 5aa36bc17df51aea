// How well lookahead sees, by distance. Recall over all picks flatters: most picks are resident
// anyway. What pays is the share of *misses* foreseen. Both are counted here, from what the
// predictor said, what the router chose and where that was; what it costs, the reads that nobody
// used, the expert store counts (experts/expert_stats.h).
//
// The sums that always hold, for each distance:
//   pick_count = foreseen_count + overlooked_count
//   miss_count = miss_foreseen_count + miss_overlooked_count
//   predicted_count = foreseen_count + mistaken_count + those of layers not routed yet
//   miss_foreseen_count ≤ foreseen_count, miss_count ≤ pick_count
// Nothing allocates after construction. One thread at a time.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "experts/expert_store.h"
#include "lookahead/predictor.h"

namespace sluice {

struct LookaheadCounts {
  uint64_t predicted_count = 0;   ///< experts named
  uint64_t mistaken_count = 0;    ///< of those: not chosen
  uint64_t pick_count = 0;        ///< experts chosen in layers for which there was a prediction
  uint64_t foreseen_count = 0;    ///< of those: named
  uint64_t overlooked_count = 0;  ///< of those: not named
  uint64_t miss_count = 0;        ///< picks that would have been misses without lookahead
  uint64_t miss_foreseen_count = 0;
  uint64_t miss_overlooked_count = 0;

  double recall() const { return share(foreseen_count, pick_count); }
  double miss_coverage() const { return share(miss_foreseen_count, miss_count); }

 private:
  static double share(uint64_t part, uint64_t whole) {
    return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
  }
};

class LookaheadStats {
 public:
  LookaheadStats(size_t layer_count, uint32_t width_max);

  /// Keeps what was predicted until the layer is routed. A later prediction for the same layer and
  /// distance replaces one that was never compared, whose experts then count as mistaken.
  void on_prediction(const Prediction& prediction);
  /// Compares a layer's choice, and where each chosen expert was, with what was predicted of it.
  void on_routing(uint32_t layer, std::span<const int32_t> experts,
                  std::span<const Whereabouts> states);
  /// The step ended early: what is not compared yet never will be, and counts as mistaken.
  void forget();

  const LookaheadCounts& at(uint32_t distance) const { return counts_[distance]; }
  /// All routed layers, predicted or not: picks and misses, each foreseen if any distance named it.
  /// Its other counts are sums over the distances.
  LookaheadCounts total() const;

 private:
  size_t index_of(uint32_t layer, uint32_t distance) const {
    return size_t{layer} * kDistanceMax + distance - 1;
  }
  std::span<const uint32_t> named(uint32_t layer, uint32_t distance) const {
    const size_t index = index_of(layer, distance);
    return {experts_.data() + index * width_max_, named_count_[index]};
  }

  std::array<LookaheadCounts, kDistanceMax + 1> counts_{};  ///< [distance]; 0: any
  uint32_t width_max_;
  std::vector<uint32_t> experts_;      ///< [layer][distance − 1][width_max]
  std::vector<uint32_t> named_count_;  ///< [layer][distance − 1]; 0: no prediction
};

}  // namespace sluice
