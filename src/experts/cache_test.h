// An expert cache for tests: over slots without memory, whose reads end at once or when the test
// says so. One thread at a time.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <vector>

#include "experts/expert_cache.h"

namespace sluice {

/// Every expert is as large as its layer's entry in `slot_bytes`, and made of one part.
struct CacheSetup {
  std::vector<uint32_t> expert_counts;  ///< [layer]
  SlotPlan plan;
  uint32_t used_count = 1;
};

/// Layers of one size, with a quota each.
inline CacheSetup layer_setup(std::vector<uint32_t> expert_counts,
                              const std::vector<uint32_t>& slot_counts, uint32_t used_count = 1) {
  const std::vector<uint64_t> bytes(expert_counts.size(), 64);
  return {std::move(expert_counts), plan_layer_pool(bytes, slot_counts), used_count};
}

/// One ring for all layers; a layer without experts takes no part.
inline CacheSetup ring_setup(std::vector<uint32_t> expert_counts, uint32_t slot_count,
                             uint32_t used_count = 1) {
  std::vector<uint64_t> bytes;
  for (const uint32_t count : expert_counts) bytes.push_back(count == 0 ? 0 : 64);
  return {std::move(expert_counts), plan_ring_pool(bytes, slot_count, 64), used_count};
}

class TestedCache {
 public:
  static constexpr PartMask kOnlyPart = 1;

  explicit TestedCache(const CacheSetup& setup)
      : TestedCache(setup, std::make_unique<LruPolicy>(expert_total(setup))) {}
  TestedCache(const CacheSetup& setup, std::unique_ptr<EvictionPolicy> policy)
      : table_(setup.plan),
        cache_(table_, {.expert_counts = setup.expert_counts, .used_count = setup.used_count},
               std::move(policy)) {}

  static uint32_t expert_total(const CacheSetup& setup) {
    return std::accumulate(setup.expert_counts.begin(), setup.expert_counts.end(), 0u);
  }

  ExpertCache& operator*() { return cache_; }
  ExpertCache* operator->() { return &cache_; }
  SlotState& state(SlotIndex slot) { return table_.state(slot); }
  SlotState& state(ExpertId id) { return table_.state(cache_.find(id)); }
  const SlotTable& table() const { return table_; }
  bool holds(ExpertId id) const { return cache_.find(id) != kNoSlot; }

  /// Uses an expert as a token does: true when it was there.
  bool use(ExpertId id) {
    const bool here = holds(id);
    if (!here) complete(cache_.bind(id, SlotUse::demand));
    cache_.use(cache_.find(id), 1);
    return here;
  }

  /// Whether an expert that was guessed, or that fills an empty slot, could have one.
  bool bring(ExpertId id, SlotUse use) {
    const SlotIndex slot = cache_.bind(id, use);
    if (slot != kNoSlot) complete(slot);
    return slot != kNoSlot;
  }

  void complete(SlotIndex slot) {
    ASSERT_NE(slot, kNoSlot);
    state(slot).begin_read();
    state(slot).part_ready(kOnlyPart, kOnlyPart);
  }

 private:
  SlotTable table_;
  ExpertCache cache_;
};

}  // namespace sluice
