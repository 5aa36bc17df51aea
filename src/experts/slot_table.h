// The slots of the expert cache without their memory: how many there are, which layers may use them
// and in what state each is. All that decides (experts/expert_cache) works on this alone, so it can
// be replayed without a model, a drive or the memory of a model.
//
//   class   slots of one size. Layers whose experts are equally large share a class, so that memory
//           can move between them: a layer computing a long prompt takes what others can spare.
//   quota   how many slots of its class a layer is entitled to. A layer may hold more while nobody
//           misses them; whoever is below its quota takes from whoever is above.
//
// The per-layer pool has a class for each size and a quota for each layer; the ring pool has one
// class whose slots hold the largest expert, and no quotas: all layers compete for all slots.
//
// States may be read by any thread; everything else by one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "experts/slot_state.h"

namespace sluice {

using SlotIndex = uint32_t;
inline constexpr SlotIndex kNoSlot = ~SlotIndex{0};
inline constexpr uint32_t kNoSlotClass = ~uint32_t{0};
/// The quota of a layer that may use every slot of its class.
inline constexpr uint32_t kNoQuota = ~uint32_t{0};

/// Which slots there are and who is entitled to them.
struct SlotPlan {
  struct Class {
    uint64_t slot_bytes = 0;
    uint32_t slot_count = 0;
  };
  std::vector<Class> classes;
  std::vector<uint32_t> class_of;  ///< [layer]; kNoSlotClass where nothing streams
  std::vector<uint32_t> quotas;    ///< [layer]; those of a class sum up to its slots, or kNoQuota

  uint64_t bytes() const;
  uint32_t slot_total() const;
};

/// A plan of the per-layer pool: layers with slots of one size share a class. Entries by layer,
/// slot_counts 0 where nothing streams.
SlotPlan plan_layer_pool(const std::vector<uint64_t>& slot_bytes,
                         const std::vector<uint32_t>& slot_counts);
/// A plan of the ring pool: `slot_count` slots with room for the largest expert, rounded up to
/// `granule_bytes` (the page, or a drive's alignment where that is more).
SlotPlan plan_ring_pool(const std::vector<uint64_t>& slot_bytes, uint32_t slot_count,
                        uint64_t granule_bytes);

class SlotTable {
 public:
  explicit SlotTable(SlotPlan plan);

  const SlotPlan& plan() const { return plan_; }
  size_t layer_count() const { return plan_.class_of.size(); }
  uint32_t slot_total() const { return first_slot_.back(); }
  SlotIndex first_slot(uint32_t slot_class) const { return first_slot_[slot_class]; }
  SlotIndex end_slot(uint32_t slot_class) const { return first_slot_[slot_class + 1]; }
  uint32_t class_of(uint32_t layer) const { return plan_.class_of[layer]; }
  uint32_t class_of_slot(SlotIndex slot) const;

  SlotState& state(SlotIndex slot) { return states_[slot]; }
  const SlotState& state(SlotIndex slot) const { return states_[slot]; }

 private:
  const SlotPlan plan_;
  std::vector<SlotIndex> first_slot_;  ///< [class], and the total at the end
  std::unique_ptr<SlotState[]> states_;
};

}  // namespace sluice
