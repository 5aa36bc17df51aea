#include "experts/slot_table.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

using Counts = std::vector<uint32_t>;
using Sizes = std::vector<uint64_t>;

TEST(SlotPlan, LayersOfOneSizeShareAClass) {
  const SlotPlan plan = plan_layer_pool({8192, 0, 4096, 8192, 4096}, {3, 0, 5, 2, 1});
  ASSERT_EQ(plan.classes.size(), 2u);
  EXPECT_EQ(plan.classes[0].slot_bytes, 8192u);
  EXPECT_EQ(plan.classes[0].slot_count, 3u + 2);
  EXPECT_EQ(plan.classes[1].slot_bytes, 4096u);
  EXPECT_EQ(plan.classes[1].slot_count, 5u + 1);
  EXPECT_EQ(plan.class_of, (Counts{0, kNoSlotClass, 1, 0, 1}));
  EXPECT_EQ(plan.quotas, (Counts{3, 0, 5, 2, 1}));
  EXPECT_EQ(plan.bytes(), 5u * 8192 + 6 * 4096);
  EXPECT_EQ(plan.slot_total(), 11u);
}

TEST(SlotPlan, TheRingHasOneClassForTheLargestExpertAndNoQuotas) {
  const SlotPlan plan = plan_ring_pool({512, 0, 4608, 1024}, 100, 4096);
  ASSERT_EQ(plan.classes.size(), 1u);
  EXPECT_EQ(plan.classes[0].slot_bytes, 8192u) << "4608, rounded up";
  EXPECT_EQ(plan.classes[0].slot_count, 100u);
  EXPECT_EQ(plan.class_of, (Counts{0, kNoSlotClass, 0, 0}));
  EXPECT_EQ(plan.quotas, (Counts{kNoQuota, 0, kNoQuota, kNoQuota}));
  EXPECT_EQ(plan.bytes(), 819'200u);
}

/// 4096 slots of 3 MiB are more than 32 bits hold.
TEST(SlotPlan, CountsBytesBeyond32Bits) {
  EXPECT_EQ(plan_ring_pool({uint64_t{3} << 20}, 4096, 4096).bytes(), uint64_t{12} << 30);
  EXPECT_EQ(plan_layer_pool({uint64_t{3} << 20}, {4096}).bytes(), uint64_t{12} << 30);
}

TEST(SlotTable, EverySlotBelongsToTheClassThatSpansIt) {
  const SlotTable table(plan_layer_pool({64, 128, 64, 256}, {3, 4, 1, 2}));
  EXPECT_EQ(table.slot_total(), 10u);
  EXPECT_EQ(table.layer_count(), 4u);
  const Counts expected{0, 0, 0, 0, 1, 1, 1, 1, 2, 2};
  for (SlotIndex slot = 0; slot < 10; ++slot) {
    EXPECT_EQ(table.class_of_slot(slot), expected[slot]);
    EXPECT_EQ(table.state(slot).phase(), SlotPhase::empty);
  }
  EXPECT_EQ(table.first_slot(1), 4u);
  EXPECT_EQ(table.end_slot(1), 8u);
  EXPECT_EQ(table.end_slot(2), 10u);
  EXPECT_EQ(table.class_of(2), 0u);
}

}  // namespace
}  // namespace sluice
