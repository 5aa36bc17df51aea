// The memory of the slots: equal buffers for each class of experts/slot_table, each with room for
// any expert of its layers and for the widening that direct reads need (io/window.h), so that a
// read goes from the drive into the place where computing will find it, without a copy.
//
//   slot   [ gate window | up window | down window ]      each window starts aligned
//                 ▲ the wanted bytes begin `head` bytes in
//
// Owns the memory; knows nothing of which expert is where (experts/expert_cache) and reads nothing
// (experts/expert_store). One thread at a time changes it; any may compute with what it holds.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/ledger.h"
#include "base/result.h"
#include "experts/slot_table.h"
#include "os/arena.h"

namespace sluice {

/// How an expert of a layer lies in a slot.
struct SlotLayout {
  std::array<uint64_t, kExpertPartCountMax> part_offset{};  ///< of each part's window in the slot
  uint64_t slot_bytes = 0;                                  ///< a multiple of the alignment
  uint64_t alignment = 1;                                   ///< of the windows, in memory too

  /// `alignment` is that of the file the layer's experts lie in.
  static SlotLayout of(const ExpertLayout& layer, uint64_t alignment);
};

class SlotPool {
 public:
  /// One allocation for all slots, entered in the ledger. `layouts` has an entry per layer; a class
  /// gives each of its layers enough room. A refusal is ErrorKind::memory.
  static Result<std::unique_ptr<SlotPool>> allocate(SlotPlan plan, std::vector<SlotLayout> layouts,
                                                    Ledger& ledger);
  ~SlotPool();
  SlotPool(const SlotPool&) = delete;
  SlotPool& operator=(const SlotPool&) = delete;

  SlotTable& table() { return table_; }
  const SlotTable& table() const { return table_; }
  SlotState& state(SlotIndex slot) { return table_.state(slot); }
  const SlotState& state(SlotIndex slot) const { return table_.state(slot); }
  uint64_t bytes() const { return arena_.bytes(); }

  /// The memory of slots whose experts are complete, slot by slot.
  std::vector<std::span<const std::byte>> resident_pieces() const;

  /// Where the window of a part of an expert of `layer` begins.
  std::byte* part_window(uint32_t layer, SlotIndex slot, size_t part) const {
    return slot_begin(slot) + layouts_[layer].part_offset[part];
  }

  /// Gives the memory of an empty slot back to the system and takes it off the ledger, until
  /// restore(). REQUIRES: empty, not released.
  void release(SlotIndex slot);
  /// The slot may be used again. REQUIRES: released.
  void restore(SlotIndex slot);

 private:
  SlotPool(SlotPlan plan, std::vector<SlotLayout> layouts, Ledger& ledger);

  struct PageRange {
    uint64_t offset;  ///< in the arena
    uint64_t bytes;
  };
  PageRange own_pages(SlotIndex slot) const;

  uint64_t slot_bytes(SlotIndex slot) const {
    return table_.plan().classes[table_.class_of_slot(slot)].slot_bytes;
  }
  std::byte* slot_begin(SlotIndex slot) const {
    const uint32_t slot_class = table_.class_of_slot(slot);
    return arena_.begin() + first_byte_[slot_class] +
           (slot - table_.first_slot(slot_class)) * table_.plan().classes[slot_class].slot_bytes;
  }

  SlotTable table_;
  const std::vector<SlotLayout> layouts_;  ///< [layer]
  Ledger& ledger_;
  std::vector<uint64_t> first_byte_;  ///< [class], and the total at the end
  uint64_t ledger_bytes_ = 0;         ///< what the ledger has of us
  os::Arena arena_;
};

}  // namespace sluice
