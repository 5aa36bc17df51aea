#include "experts/slot_pool.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"
#include "base/units.h"
#include "io/window.h"
#include "os/memory.h"
#include "testing/huge_pages.h"

namespace sluice {
namespace {

ExpertLayout layout_of(uint32_t expert_count, std::vector<uint64_t> part_bytes,
                       uint64_t first_offset = 1024) {
  std::vector<ExpertPart> parts;
  for (size_t i = 0; i < part_bytes.size(); ++i) {
    const bool last = i + 1 == part_bytes.size();
    parts.push_back({.kind = last ? ExpertPartKind::down : ExpertPartKind::gate,
                     .shape = {},
                     .first_expert = {0, first_offset, part_bytes[i]}});
    first_offset += part_bytes[i] * expert_count + 32;
  }
  return ExpertLayout(expert_count, parts);
}

TEST(SlotLayout, GivesTheWindowsOfTheHeader) {
  // 9000 bytes at multiples of 8 and not of 32: up to 4095 in front; 8192 at multiples of 32.
  const SlotLayout layout = SlotLayout::of(layout_of(4, {9000, 8192}), 4096);
  EXPECT_EQ(layout.part_offset[0], 0u);
  EXPECT_EQ(layout.part_offset[1], 16'384u) << "4095 + 9000, rounded up";
  EXPECT_EQ(layout.slot_bytes, 16'384u + 12'288u) << "4096 − 32 + 8192, rounded up";
}

TEST(SlotLayout, EveryExpertFits) {
  Random random(1);
  for (int round = 0; round < 500; ++round) {
    const uint64_t alignment = uint64_t{512} << random.below(6);
    const uint64_t step = random.below(2) == 0 ? 32 : 2;
    const ExpertLayout experts =
        layout_of(1 + static_cast<uint32_t>(random.below(40)),
                  {step * (1 + random.below(9000)), step * (1 + random.below(900))},
                  step * random.below(100'000));
    const SlotLayout layout = SlotLayout::of(experts, alignment);
    ASSERT_EQ(layout.slot_bytes % alignment, 0u);
    for (size_t part = 0; part < 2; ++part) {
      const uint64_t end = part == 0 ? layout.part_offset[1] : layout.slot_bytes;
      ASSERT_EQ(layout.part_offset[part] % alignment, 0u);
      for (uint32_t expert = 0; expert < experts.expert_count(); ++expert) {
        const auto window = io::window_of(experts.parts()[part].extent(expert), alignment);
        ASSERT_LE(layout.part_offset[part] + window.bytes, end);
      }
    }
  }
}

/// A plan and layouts for layers of these experts, `slots` for each.
struct PoolSetup {
  SlotPlan plan;
  std::vector<SlotLayout> layouts;
};

PoolSetup setup_of(const std::vector<ExpertLayout>& experts,
                   const std::vector<uint64_t>& alignments, const std::vector<uint32_t>& slots) {
  PoolSetup setup;
  std::vector<uint64_t> bytes;
  for (size_t i = 0; i < experts.size(); ++i) {
    setup.layouts.push_back(SlotLayout::of(experts[i], alignments[i]));
    bytes.push_back(setup.layouts.back().slot_bytes);
  }
  setup.plan = plan_layer_pool(bytes, slots);
  return setup;
}

class SlotPoolTest : public ::testing::Test {
 protected:
  std::unique_ptr<SlotPool> allocate(PoolSetup setup) {
    auto pool = SlotPool::allocate(std::move(setup.plan), std::move(setup.layouts), ledger_);
    CHECK(pool.ok());
    return std::move(*pool);
  }

  /// Windows of all parts of all slots, as any layer of the slot's class would use them: aligned
  /// as that layer wants, within the slot, and apart from those of every other slot.
  static void expect_aligned_and_apart(const SlotPool& pool, const PoolSetup& setup,
                                       size_t part_count) {
    std::vector<std::pair<uintptr_t, uintptr_t>> slots;
    for (SlotIndex slot = 0; slot < pool.table().slot_total(); ++slot) {
      uintptr_t first = UINTPTR_MAX, last = 0;
      for (uint32_t layer = 0; layer < setup.layouts.size(); ++layer) {
        if (setup.plan.class_of[layer] != pool.table().class_of_slot(slot)) continue;
        const SlotLayout& layout = setup.layouts[layer];
        const auto begin = reinterpret_cast<uintptr_t>(pool.part_window(layer, slot, 0));
        for (size_t part = 0; part < part_count; ++part) {
          const auto window = reinterpret_cast<uintptr_t>(pool.part_window(layer, slot, part));
          EXPECT_EQ(window % layout.alignment, 0u) << "layer " << layer;
          EXPECT_EQ(window - begin, layout.part_offset[part]);
        }
        first = std::min(first, begin);
        last = std::max(last, begin + layout.slot_bytes);
      }
      slots.emplace_back(first, last);
    }
    std::ranges::sort(slots);
    for (size_t i = 1; i < slots.size(); ++i) EXPECT_LE(slots[i - 1].second, slots[i].first);
    EXPECT_LE(slots.back().second - slots.front().first, pool.bytes());
  }

  Ledger ledger_;
};

/// Shards may lie on drives of different sector sizes.
TEST_F(SlotPoolTest, SlotsAreAlignedAndApart) {
  const std::vector<uint64_t> alignments{512, 4096, 512, 2048, 4096, 512};
  std::vector<ExpertLayout> experts;
  for (size_t i = 0; i < alignments.size(); ++i)
    experts.push_back(layout_of(8, {1000 * (i % 5 + 1), 64, 96}));
  const PoolSetup setup = setup_of(experts, alignments, {3, 4, 0, 6, 7, 2});
  EXPECT_EQ(setup.plan.class_of[0], setup.plan.class_of[5]);
  const auto pool = allocate(setup);
  EXPECT_EQ(pool->table().slot_total(), 3u + 4 + 6 + 7 + 2);
  expect_aligned_and_apart(*pool, setup, 3);
}

TEST_F(SlotPoolTest, TheRingsSlotsSuitEveryLayer) {
  PoolSetup setup =
      setup_of({layout_of(8, {5000, 96}), layout_of(8, {640, 640}), layout_of(8, {96, 9000})},
               {512, 4096, 512}, {1, 1, 1});
  std::vector<uint64_t> bytes;
  for (const SlotLayout& layout : setup.layouts) bytes.push_back(layout.slot_bytes);
  setup.plan = plan_ring_pool(bytes, 11, 4096);
  const auto pool = allocate(setup);
  EXPECT_EQ(pool->table().slot_total(), 11u);
  expect_aligned_and_apart(*pool, setup, 2);
}

TEST_F(SlotPoolTest, TheLedgerKnowsItsMemory) {
  {
    const auto pool = allocate(setup_of({layout_of(8, {100'000})}, {4096}, {5}));
    EXPECT_GE(pool->bytes(), 500'000u);
    EXPECT_EQ(ledger_.bytes(MemoryUse::cache), pool->bytes());
    EXPECT_EQ(ledger_.total_bytes(), pool->bytes());
  }
  EXPECT_EQ(ledger_.total_bytes(), 0u);
}

TEST_F(SlotPoolTest, WhatCannotBeHadIsAnErrorAndNotInTheLedger) {
  PoolSetup setup = setup_of({layout_of(8, {uint64_t{1} << 45})}, {4096}, {8});
  const auto pool = SlotPool::allocate(setup.plan, setup.layouts, ledger_);
  ASSERT_FALSE(pool.ok());
  EXPECT_EQ(pool.error().kind, ErrorKind::memory);
  EXPECT_NE(pool.error().message.find("expert cache"), std::string::npos);
  EXPECT_EQ(ledger_.total_bytes(), 0u);
}

TEST_F(SlotPoolTest, ResidentPiecesAreThoseOfCompleteExperts) {
  const auto pool =
      allocate(setup_of({layout_of(8, {64}), layout_of(8, {5000})}, {512, 512}, {2, 3}));
  EXPECT_TRUE(pool->resident_pieces().empty());
  for (const SlotIndex slot : {0, 1, 3}) pool->state(slot).begin_read();
  pool->state(1).part_ready(1, 1);
  pool->state(3).part_ready(1, 1);
  pool->state(0).fail();
  const auto pieces = pool->resident_pieces();
  ASSERT_EQ(pieces.size(), 2u);
  EXPECT_EQ(pieces[0].data(), pool->part_window(0, 1, 0));
  EXPECT_EQ(pieces[0].size(), 1024u);
  EXPECT_EQ(pieces[1].data(), pool->part_window(1, 3, 0));
}

TEST_F(SlotPoolTest, AReleasedSlotIsOffTheLedgerAndReadsAsZeros) {
  const PoolSetup setup = setup_of({layout_of(8, {9000, 200}, 1056)}, {4096}, {4});
  const uint64_t slot_bytes = setup.layouts[0].slot_bytes;
  {
    const auto pool = allocate(setup);
    const auto bytes_of = [&](SlotIndex slot) {
      return std::span(pool->part_window(0, slot, 0), slot_bytes);
    };
    for (SlotIndex slot = 0; slot < 4; ++slot) std::ranges::fill(bytes_of(slot), std::byte{7});
    pool->release(1);
    pool->release(3);
    EXPECT_EQ(ledger_.bytes(MemoryUse::cache), pool->bytes() - 2 * slot_bytes);
    for (SlotIndex slot = 0; slot < 4; ++slot)
      EXPECT_TRUE(std::ranges::all_of(bytes_of(slot), [&](std::byte value) {
        return value == std::byte(slot % 2 == 0 ? 7 : 0);
      })) << slot;
    pool->restore(3);
    EXPECT_EQ(ledger_.bytes(MemoryUse::cache), pool->bytes() - slot_bytes);
  }
  EXPECT_EQ(ledger_.total_bytes(), 0u) << "what was released is not taken off twice";
}

/// With sectors below a page neighbours share pages, which stay as they are.
TEST_F(SlotPoolTest, ReleasingASlotLeavesItsNeighboursAlone) {
  const PoolSetup setup = setup_of({layout_of(8, {9000, 200}, 1056)}, {512}, {5});
  ASSERT_NE(setup.layouts[0].slot_bytes % os::page_bytes(), 0u);
  const auto pool = allocate(setup);
  std::byte* const begin = pool->part_window(0, 0, 0);
  const uint64_t slot_bytes = setup.layouts[0].slot_bytes;
  std::fill_n(begin, 5 * slot_bytes, std::byte{7});
  pool->release(2);
  const auto is_kept = [](std::byte value) { return value == std::byte{7}; };
  EXPECT_TRUE(std::all_of(begin, begin + 2 * slot_bytes, is_kept));
  EXPECT_TRUE(std::all_of(begin + 3 * slot_bytes, begin + 5 * slot_bytes, is_kept));
}

TEST_F(SlotPoolTest, ReleasedMemoryGoesBackToTheSystem) {
  constexpr uint32_t kSlots = 40;
  const PoolSetup setup = setup_of({layout_of(8, {uint64_t{1} << 20})}, {4096}, {kSlots});
  const auto pool = allocate(setup);
  const uint64_t slot_bytes = setup.layouts[0].slot_bytes;
  const uint64_t before = os::resident_bytes();
  for (SlotIndex slot = 0; slot < kSlots; ++slot)
    std::fill_n(pool->part_window(0, slot, 0), slot_bytes, std::byte{1});
  const uint64_t full = os::resident_bytes();
  EXPECT_GT(full - before, 38u << 20);
  for (SlotIndex slot = 0; slot < 30; ++slot) pool->release(slot);
  EXPECT_LT(os::resident_bytes(), full - (28u << 20));
  for (SlotIndex slot = 0; slot < 30; ++slot) pool->restore(slot);
  EXPECT_LT(os::resident_bytes(), full - (28u << 20)) << "memory comes as it is used";
}

/// Else the system would put small pages together and so take back what was given; and a slot in
/// small pages costs computing with its expert.
TEST_F(SlotPoolTest, ASlotHasHugePagesUnlessItIsReleased) {
  constexpr uint32_t kSlots = 12;
  const PoolSetup setup = setup_of({layout_of(8, {uint64_t{3} << 20})}, {4096}, {kSlots});
  const auto pool = allocate(setup);
  const uint64_t slot_bytes = setup.layouts[0].slot_bytes;
  const uint64_t before = bytes_without_huge_pages();
  for (const SlotIndex slot : {2, 3, 7}) pool->release(slot);
  const uint64_t released = bytes_without_huge_pages() - before;
  if (released == 0) GTEST_SKIP() << "this system has no huge pages";
  EXPECT_EQ(released, 3 * slot_bytes);
  for (const SlotIndex slot : {7, 3}) pool->restore(slot);
  EXPECT_EQ(bytes_without_huge_pages() - before, slot_bytes);
  pool->restore(2);
  EXPECT_EQ(bytes_without_huge_pages(), before);
}

TEST_F(SlotPoolTest, OnlyEmptySlotsAreReleased) {
  const auto pool = allocate(setup_of({layout_of(8, {640})}, {512}, {2}));
  pool->state(1).begin_read();
  EXPECT_DEATH(pool->release(1), "check failed");
}

}  // namespace
}  // namespace sluice
