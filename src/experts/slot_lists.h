// Slots in doubly linked lists that share one array: each slot is in exactly one list, and moving
// it to another allocates nothing. One thread at a time.
#pragma once

#include <vector>

#include "experts/slot_table.h"

namespace sluice {

class SlotLists {
 public:
  SlotLists(uint32_t slot_total, uint32_t list_count)
      : links_(slot_total), heads_(list_count, kNoSlot), counts_(list_count, 0) {}

  uint32_t count(uint32_t list) const { return counts_[list]; }
  /// kNoSlot when the list is empty.
  SlotIndex first(uint32_t list) const { return heads_[list]; }
  /// kNoSlot behind the last.
  SlotIndex next(SlotIndex slot) const { return links_[slot].next; }
  uint32_t list_of(SlotIndex slot) const { return links_[slot].list; }

  /// Puts a slot that is in no list at the front of one.
  void insert(SlotIndex slot, uint32_t list) {
    links_[slot] = {.previous = kNoSlot, .next = heads_[list], .list = list};
    if (heads_[list] != kNoSlot) links_[heads_[list]].previous = slot;
    heads_[list] = slot;
    ++counts_[list];
  }
  void move(SlotIndex slot, uint32_t list) {
    const Link link = links_[slot];
    (link.previous == kNoSlot ? heads_[link.list] : links_[link.previous].next) = link.next;
    if (link.next != kNoSlot) links_[link.next].previous = link.previous;
    --counts_[link.list];
    insert(slot, list);
  }

 private:
  struct Link {
    SlotIndex previous = kNoSlot;
    SlotIndex next = kNoSlot;
    uint32_t list = 0;
  };
  std::vector<Link> links_;       ///< [slot]
  std::vector<SlotIndex> heads_;  ///< [list]
  std::vector<uint32_t> counts_;  ///< [list]
};

}  // namespace sluice
