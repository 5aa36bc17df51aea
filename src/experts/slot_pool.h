// The slots of the expert cache: for each streamed layer a row of equal buffers, each with room for
// any expert of that layer and for the widening that direct reads need (io/window.h), so that a
// read goes from the drive into the place where computing will find it, without a copy.
//
//   slot   [ gate window | up window | down window ]      each window starts aligned
//                 ▲ the wanted bytes begin `head` bytes in
//
// Owns the memory and the states; knows nothing of which expert is where (experts/expert_cache) and
// reads nothing (experts/expert_store). Slots are numbered over all layers.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/ledger.h"
#include "base/result.h"
#include "experts/slot_state.h"
#include "os/arena.h"

namespace sluice {

using SlotIndex = uint32_t;
inline constexpr SlotIndex kNoSlot = ~SlotIndex{0};

/// How a layer's slots are laid out.
struct SlotLayout {
  std::array<uint64_t, kExpertPartCountMax> part_offset{};  ///< of each part's window in the slot
  uint64_t slot_bytes = 0;                                  ///< a multiple of the alignment
  uint64_t alignment = 1;                                   ///< of the windows, in memory too

  /// `alignment` is that of the file the layer's experts lie in.
  static SlotLayout of(const ExpertLayout& layer, uint64_t alignment);
};

class SlotPool {
 public:
  /// What a layer gets; slot_count 0 for layers without streamed experts.
  struct Layer {
    SlotLayout layout;
    uint32_t slot_count = 0;
  };

  /// One allocation for all slots, entered in the ledger. A refusal is ErrorKind::memory.
  static Result<std::unique_ptr<SlotPool>> allocate(std::vector<Layer> layers, Ledger& ledger);
  ~SlotPool();
  SlotPool(const SlotPool&) = delete;
  SlotPool& operator=(const SlotPool&) = delete;

  size_t layer_count() const { return layers_.size(); }
  uint32_t slot_count(size_t layer) const { return layers_[layer].slot_count; }
  uint32_t slot_total() const { return first_slot_.back(); }
  SlotIndex first_slot(size_t layer) const { return first_slot_[layer]; }
  uint64_t bytes() const { return arena_.bytes(); }

  /// The memory of slots whose experts are complete, slot by slot.
  std::vector<std::span<const std::byte>> resident_pieces() const;

  SlotState& state(SlotIndex slot) { return states_[slot]; }
  const SlotState& state(SlotIndex slot) const { return states_[slot]; }

  /// Where the window of a part begins. REQUIRES: slot belongs to the layer.
  std::byte* part_window(size_t layer, SlotIndex slot, size_t part) const {
    const Layer& row = layers_[layer];
    return arena_.begin() + first_byte_[layer] +
           (slot - first_slot_[layer]) * row.layout.slot_bytes + row.layout.part_offset[part];
  }

 private:
  SlotPool(std::vector<Layer> layers, Ledger& ledger);

  const std::vector<Layer> layers_;
  Ledger& ledger_;
  std::vector<SlotIndex> first_slot_;  ///< [layer], and the total at the end
  std::vector<uint64_t> first_byte_;   ///< [layer], and the total at the end
  std::unique_ptr<SlotState[]> states_;
  os::Arena arena_;
};

}  // namespace sluice
