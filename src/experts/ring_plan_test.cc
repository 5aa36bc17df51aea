#include "experts/ring_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"
#include "base/units.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// A model of 94 layers with 128 experts of about 10 MB, on a machine of 48 GiB with 40 GiB free.
constexpr RingInput kLarge{.machine_bytes = 48 * kGiB,
                           .available_bytes = 40 * kGiB,
                           .resident_bytes = 8 * kGiB,
                           .overhead_bytes = 1 * kGiB,
                           .expert_bytes_max = 10'000'000,
                           .experts_total = 94 * 128,
                           .slots_min = 8};

TEST(RingPlan, AMachineOf48GiB) {
  const RingPlan plan = plan_ring(kLarge);
  EXPECT_EQ(plan.slot_bytes, 10'002'432u) << "2442 pages";
  // 40 − 8 − 1 − max(48 / 8, 4) = 25 GiB = 26843545600 bytes
  EXPECT_EQ(plan.slot_count, 2683u);
  EXPECT_EQ(plan.ring_bytes(), 2683ull * 10'002'432);
  EXPECT_FALSE(plan.all_resident);
  EXPECT_THAT(plan.notes, IsEmpty());
}

TEST(RingPlan, PagesMayBeLarger) {
  RingInput input = kLarge;
  input.page_bytes = 16384;
  EXPECT_EQ(plan_ring(input).slot_bytes, 10'010'624u) << "611 pages";
}

TEST(RingPlan, SmallMachinesLeave4GiB) {
  RingInput input = kLarge;
  input.machine_bytes = 16 * kGiB;
  input.available_bytes = 14 * kGiB;
  input.resident_bytes = 2 * kGiB;
  // 14 − 2 − 1 − 4 = 7 GiB; an eighth would have been 2.
  EXPECT_EQ(plan_ring(input).slot_count, 751u);
}

TEST(RingPlan, AQuarterOfWhatIsFreeInAnyCase) {
  RingInput input = kLarge;
  input.machine_bytes = 16 * kGiB;
  input.available_bytes = 8 * kGiB;
  input.resident_bytes = 3 * kGiB;
  const RingPlan plan = plan_ring(input);
  // 8 − 3 − 1 = 4 GiB are free, of which nothing would be left; the ring takes 1 GiB.
  EXPECT_EQ(plan.slot_count, 107u);
  EXPECT_THAT(plan.notes,
              ElementsAre("the ring takes a quarter of the 4.00 GiB that are free: less "
                          "than 4.00 GiB remain for the system"));
}

TEST(RingPlan, Between64And4096Slots) {
  RingInput input = kLarge;
  input.available_bytes = 9 * kGiB + 100 * kMiB;
  RingPlan plan = plan_ring(input);
  EXPECT_EQ(plan.slot_count, 64u);
  ASSERT_EQ(plan.notes.size(), 2u) << "the quarter, and the least";
  EXPECT_THAT(plan.notes[1], HasSubstr("64 slots, its least, where 2 would"));
  input.available_bytes = 200 * kGiB;
  plan = plan_ring(input);
  EXPECT_EQ(plan.slot_count, 4096u);
  EXPECT_THAT(plan.notes, ElementsAre(HasSubstr("4096 slots, its most, though memory would hold")));
}

TEST(RingPlan, NoMoreSlotsThanExperts) {
  RingInput input = kLarge;
  input.experts_total = 1000;
  const RingPlan plan = plan_ring(input);
  EXPECT_EQ(plan.slot_count, 1000u);
  EXPECT_TRUE(plan.all_resident);
  EXPECT_THAT(plan.notes, IsEmpty());
}

TEST(RingPlan, ABudgetIsNeverExceeded) {
  RingInput input = kLarge;
  input.budget_bytes = 100 * 10'002'432 + 5;
  RingPlan plan = plan_ring(input);
  EXPECT_EQ(plan.slot_count, 100u);
  EXPECT_THAT(plan.notes, ElementsAre(HasSubstr("100 slots instead of 2683")));
  input.budget_bytes = 30 * 10'002'432;
  EXPECT_EQ(plan_ring(input).slot_count, 30u) << "not even by the least of 64";
  input.budget_bytes = 3 * 10'002'432;
  plan = plan_ring(input);
  EXPECT_EQ(plan.slot_count, 8u) << "but a token must run";
  EXPECT_THAT(plan.notes.back(), HasSubstr("8 slots instead of 3"));
}

TEST(RingPlan, SlotsMayBeAskedForOutright) {
  RingInput input = kLarge;
  input.slots_asked = 5000;
  EXPECT_EQ(plan_ring(input).slot_count, 5000u) << "beyond the automatic most";
  EXPECT_THAT(plan_ring(input).notes, IsEmpty());
  input.slots_asked = 20;
  EXPECT_EQ(plan_ring(input).slot_count, 20u);
  input.slots_asked = 0;
  EXPECT_EQ(plan_ring(input).slot_count, 8u);
  input.slots_asked = 5000;
  input.budget_bytes = 1000 * 10'002'432ull;
  EXPECT_EQ(plan_ring(input).slot_count, 1000u);
}

TEST(RingPlan, SlotsMayBeAskedForInBytes) {
  RingInput input = kLarge;
  input.bytes_asked = 500 * 10'002'432ull + 5;
  RingPlan plan = plan_ring(input);
  EXPECT_EQ(plan.slot_count, 500u);
  EXPECT_THAT(plan.notes, IsEmpty());
  input.budget_bytes = 100 * 10'002'432ull;
  plan = plan_ring(input);
  EXPECT_EQ(plan.slot_count, 100u);
  EXPECT_THAT(plan.notes, ElementsAre(HasSubstr("100 slots instead of 500")));
  input.slots_asked = 20;
  EXPECT_EQ(plan_ring(input).slot_count, 20u) << "a number says more than bytes";
}

TEST(RingPlan, KeepsItsPromisesForRandomMachines) {
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    RingInput input{.machine_bytes = 1 + random.below(256 * kGiB),
                    .available_bytes = random.below(256 * kGiB),
                    .resident_bytes = random.below(32 * kGiB),
                    .overhead_bytes = random.below(4 * kGiB),
                    .expert_bytes_max = 1 + random.below(32 * kMiB),
                    .experts_total = static_cast<uint32_t>(8 + random.below(20000)),
                    .slots_min = static_cast<uint32_t>(1 + random.below(8))};
    if (random.below(2) == 0) input.budget_bytes = random.below(64 * kGiB);
    const RingPlan plan = plan_ring(input);
    ASSERT_EQ(plan.slot_bytes % 4096, 0u);
    ASSERT_GE(plan.slot_bytes, input.expert_bytes_max);
    ASSERT_LT(plan.slot_bytes, input.expert_bytes_max + 4096);
    ASSERT_GE(plan.slot_count, input.slots_min);
    ASSERT_LE(plan.slot_count, std::min(input.experts_total, 4096u));
    ASSERT_EQ(plan.all_resident, plan.slot_count == input.experts_total);
    if (input.budget_bytes && plan.slot_count > input.slots_min) {
      ASSERT_LE(plan.ring_bytes(), *input.budget_bytes);
    } else if (!input.budget_bytes) {
      ASSERT_GE(plan.slot_count, std::min(input.experts_total, 64u));
    }
  }
}

}  // namespace
}  // namespace sluice
