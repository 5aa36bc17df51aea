// The default policy: while decoding, experts leave in the order that the contest says
// (experts/eviction_contest); while a prompt goes on, and in layers that have a slot for every
// expert until slots are withdrawn from them, the least recently used leaves. One thread at a time.
#pragma once

#include <vector>

#include "experts/eviction.h"
#include "experts/eviction_contest.h"

namespace sluice {

class ContestPolicy final : public EvictionPolicy {
 public:
  /// Entries by layer, as for the contest.
  ContestPolicy(const std::vector<EvictionContest::Layer>& layers, uint32_t used_count);

  void on_tokens(uint32_t count) override;
  void on_routing(uint32_t layer, std::span<const int32_t> chosen) override;
  void on_use(uint32_t expert, double weight) override { recency_.on_use(expert, weight); }
  bool leaves_before(uint32_t a, uint32_t b, Ranking ranking) const override;

 private:
  const uint32_t used_count_;
  EvictionContest contest_;
  LruPolicy recency_;
  std::vector<ExpertId> ids_;     ///< [expert]
  std::vector<uint16_t> chosen_;  ///< of one routing
};

}  // namespace sluice
