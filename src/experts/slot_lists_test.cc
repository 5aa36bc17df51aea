#include "experts/slot_lists.h"

#include <gtest/gtest.h>

#include <deque>

#include "base/random.h"

namespace sluice {
namespace {

std::deque<SlotIndex> slots_in(const SlotLists& lists, uint32_t list) {
  std::deque<SlotIndex> slots;
  for (SlotIndex slot = lists.first(list); slot != kNoSlot; slot = lists.next(slot))
    slots.push_back(slot);
  return slots;
}

TEST(SlotLists, TheLastToComeIsInFront) {
  SlotLists lists(5, 2);
  for (const SlotIndex slot : {3, 0, 4}) lists.insert(slot, 1);
  EXPECT_EQ(slots_in(lists, 1), (std::deque<SlotIndex>{4, 0, 3}));
  EXPECT_EQ(lists.first(0), kNoSlot);
  lists.move(0, 0);
  lists.move(3, 0);
  EXPECT_EQ(slots_in(lists, 0), (std::deque<SlotIndex>{3, 0}));
  EXPECT_EQ(slots_in(lists, 1), (std::deque<SlotIndex>{4}));
  lists.move(4, 1);
  EXPECT_EQ(slots_in(lists, 1), (std::deque<SlotIndex>{4}));
}

TEST(SlotLists, AreSimpleListsOverRandomMoves) {
  constexpr SlotIndex kSlots = 23;
  constexpr uint32_t kLists = 5;
  Random random(1);
  SlotLists lists(kSlots, kLists);
  std::vector<std::deque<SlotIndex>> model(kLists);
  for (SlotIndex slot = 0; slot < kSlots; ++slot) {
    lists.insert(slot, slot % kLists);
    model[slot % kLists].push_front(slot);
  }
  for (int step = 0; step < 20'000; ++step) {
    const auto slot = static_cast<SlotIndex>(random.below(kSlots));
    const auto list = static_cast<uint32_t>(random.below(kLists));
    std::erase(model[lists.list_of(slot)], slot);
    model[list].push_front(slot);
    lists.move(slot, list);
    ASSERT_EQ(lists.list_of(slot), list);
    for (uint32_t i = 0; i < kLists; ++i) {
      ASSERT_EQ(lists.count(i), model[i].size());
      ASSERT_EQ(slots_in(lists, i), model[i]);
    }
  }
}

}  // namespace
}  // namespace sluice
