#include "experts/slot_pool.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"
#include "base/units.h"
#include "io/window.h"

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

class SlotPoolTest : public ::testing::Test {
 protected:
  std::unique_ptr<SlotPool> allocate(std::vector<SlotPool::Layer> layers) {
    auto pool = SlotPool::allocate(std::move(layers), ledger_);
    CHECK(pool.ok());
    return std::move(*pool);
  }

  Ledger ledger_;
};

/// Shards may lie on drives of different sector sizes.
TEST_F(SlotPoolTest, SlotsAreAlignedAndApart) {
  const std::vector<uint64_t> alignments{512, 4096, 512, 2048, 4096};
  std::vector<SlotPool::Layer> layers;
  for (size_t i = 0; i < alignments.size(); ++i)
    layers.push_back({SlotLayout::of(layout_of(8, {1000 * (i + 1), 64, 96}), alignments[i]),
                      static_cast<uint32_t>(i == 2 ? 0 : 3 + i)});
  const auto pool = allocate(layers);
  EXPECT_EQ(pool->slot_total(), 3u + 4 + 0 + 6 + 7);

  std::vector<std::pair<uintptr_t, uintptr_t>> ranges;
  for (size_t layer = 0; layer < layers.size(); ++layer) {
    ASSERT_EQ(pool->slot_count(layer), layers[layer].slot_count);
    const SlotLayout& layout = layers[layer].layout;
    for (uint32_t i = 0; i < pool->slot_count(layer); ++i) {
      for (size_t part = 0; part < 3; ++part) {
        const auto begin = reinterpret_cast<uintptr_t>(
            pool->part_window(layer, pool->first_slot(layer) + i, part));
        EXPECT_EQ(begin % alignments[layer], 0u) << "layer " << layer;
        const uint64_t end = part == 2 ? layout.slot_bytes : layout.part_offset[part + 1];
        ranges.emplace_back(begin, begin + end - layout.part_offset[part]);
      }
    }
  }
  std::ranges::sort(ranges);
  for (size_t i = 1; i < ranges.size(); ++i) EXPECT_LE(ranges[i - 1].second, ranges[i].first);
  EXPECT_LE(ranges.back().second - ranges.front().first, pool->bytes());
}

TEST_F(SlotPoolTest, TheLedgerKnowsItsMemory) {
  {
    const auto pool = allocate({{SlotLayout::of(layout_of(8, {100'000}), 4096), 5}});
    EXPECT_GE(pool->bytes(), 500'000u);
    EXPECT_EQ(ledger_.bytes(MemoryUse::cache), pool->bytes());
    EXPECT_EQ(ledger_.total_bytes(), pool->bytes());
  }
  EXPECT_EQ(ledger_.total_bytes(), 0u);
}

TEST_F(SlotPoolTest, WhatCannotBeHadIsAnErrorAndNotInTheLedger) {
  const auto pool =
      SlotPool::allocate({{SlotLayout::of(layout_of(8, {uint64_t{1} << 45}), 4096), 8}}, ledger_);
  ASSERT_FALSE(pool.ok());
  EXPECT_EQ(pool.error().kind, ErrorKind::memory);
  EXPECT_NE(pool.error().message.find("expert cache"), std::string::npos);
  EXPECT_EQ(ledger_.total_bytes(), 0u);
}

TEST_F(SlotPoolTest, ResidentPiecesAreThoseOfCompleteExperts) {
  const auto pool = allocate({{SlotLayout::of(layout_of(8, {64}), 512), 2},
                              {SlotLayout::of(layout_of(8, {5000}), 512), 3}});
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

}  // namespace
}  // namespace sluice
