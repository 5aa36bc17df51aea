// The default policy: while decoding, experts leave in the order that the contest says
// (experts/eviction_contest); while a prompt goes on, and in layers that have a slot for every
// expert until slots are withdrawn from them, the least recently used leaves. One thread at a time.
#pragma once

#include <vector>

#include "experts/eviction.h"
#include "experts/eviction_contest.h"
#include "experts/slot_table.h"

namespace sluice {

/// What each layer's shadow of the cache holds. A ring's slots are dealt out evenly, and in it
/// every layer may lose experts. Entries by layer.
std::vector<EvictionContest::Layer> plan_contest(const SlotPlan& plan,
                                                 std::span<const uint32_t> expert_counts);

class ContestPolicy final : public EvictionPolicy {
 public:
  /// Entries by layer, as for the contest.
  ContestPolicy(const std::vector<EvictionContest::Layer>& layers, uint32_t used_count);

  void on_tokens(uint32_t count) override;
  void on_routing(uint32_t layer, std::span<const int32_t> chosen) override;
  void on_use(uint32_t expert, double weight) override;
  std::span<const LeaveKey> keys(Ranking ranking) const override {
    return ranking == Ranking::worth ? keys_ : recency_.keys(ranking);
  }

 private:
  void rank_layer(uint32_t layer);

  const uint32_t used_count_;
  EvictionContest contest_;
  LruPolicy recency_;
  std::vector<uint32_t> first_expert_;  ///< [layer], counting experts over all layers; the total
  std::vector<bool> is_contested_;      ///< [expert]
  std::vector<LeaveKey> keys_;          ///< [expert], by recency where there is no contest
  std::vector<uint16_t> chosen_;        ///< of one routing
};

}  // namespace sluice
