#include "lookahead/step_yardstick.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

constexpr double kUsualNs = 100e6;
constexpr uint64_t kNsPerMiss = 2'000'000;

/// A step of 60 ms and 2 ms for each expert that is missing.
StepReport step_of(uint32_t miss_count) {
  return {.step_ns = 60'000'000 + kNsPerMiss * miss_count, .miss_count = miss_count};
}

/// Has seen as many steps of 10 misses as of 30.
StepYardstick taught() {
  StepYardstick yardstick;
  for (int i = 0; i < 32; ++i) yardstick.learn(step_of(i % 2 == 0 ? 10 : 30), kUsualNs);
  return yardstick;
}

TEST(StepYardstick, TakesOffWhatMoreDemandExplains) {
  const StepYardstick yardstick = taught();
  for (const uint32_t misses : {0u, 10u, 20u, 30u, 40u})
    EXPECT_NEAR(yardstick.measure_ns(step_of(misses), kUsualNs), 100e6, 1e3) << misses;
}

TEST(StepYardstick, AnExpertThatPrefetchSavedIsDemandToo) {
  const StepReport saved{.step_ns = 80'000'000, .miss_count = 10, .prefetch_useful_count = 10};
  EXPECT_NEAR(taught().measure_ns(saved, kUsualNs), 80e6, 1e3) << "20 ms less than usual";
}

TEST(StepYardstick, TakesTimesAsTheyAreUntilItHasLearnt) {
  StepYardstick yardstick;
  for (int i = 0; i < 11; ++i) {
    EXPECT_FALSE(yardstick.has_learnt());
    EXPECT_EQ(yardstick.measure_ns(step_of(30), kUsualNs), 120e6);
    yardstick.learn(step_of(i % 2 == 0 ? 10 : 30), kUsualNs);
  }
  yardstick.learn(step_of(10), kUsualNs);
  EXPECT_TRUE(yardstick.has_learnt());
}

TEST(StepYardstick, TimeThatGrowsByItselfIsNotPutDownToDemand) {
  StepYardstick yardstick;
  for (uint32_t i = 0; i < 64; ++i) {
    StepReport step = step_of(20);
    step.step_ns += i * 1'000'000;
    yardstick.learn(step, kUsualNs);
  }
  EXPECT_EQ(yardstick.measure_ns(step_of(40), kUsualNs), 140e6);
}

TEST(StepYardstick, WrongGuessesPayForWhatTheyWillCost) {
  StepYardstick yardstick = taught();
  StepReport step = step_of(20);
  step.prefetch_wasted_count = 10;
  EXPECT_NEAR(yardstick.measure_ns(step, kUsualNs), 102e6, 1e3) << "a tenth is missed, at first";

  step.regret_count = 5;
  for (int i = 0; i < 1000; ++i) yardstick.count_regret(step);
  EXPECT_NEAR(yardstick.measure_ns(step, kUsualNs), 110e6, 1e3) << "it was half of them";

  step.regret_count = 0;
  for (int i = 0; i < 1000; ++i) yardstick.count_regret(step);
  EXPECT_NEAR(yardstick.measure_ns(step, kUsualNs), 100e6, 1e3) << "and none of late";
}

TEST(StepYardstick, AFreakCountsAsAFewUsualSteps) {
  const StepReport freak{.step_ns = 60'000'000'000};
  EXPECT_EQ(StepYardstick().measure_ns(freak, kUsualNs), 2.5 * kUsualNs);
  EXPECT_EQ(taught().measure_ns(freak, kUsualNs), 2.5 * kUsualNs);
}

TEST(StepYardstick, NoiseIsWhatDemandDoesNotExplain) {
  EXPECT_NEAR(taught().noise(), 0.01 * 0.01, 1e-12) << "nothing: the least that is believed";

  StepYardstick yardstick;
  for (int i = 0; i < 256; ++i) {
    StepReport step = step_of(i % 2 == 0 ? 10 : 30);
    step.step_ns += i / 2 % 2 == 0 ? 0 : 20'000'000;
    yardstick.learn(step, kUsualNs);
  }
  EXPECT_NEAR(yardstick.noise(), 0.1 * 0.1, 0.2 * 0.1 * 0.1) << "10 ms to each side of 90 or 110";
}

}  // namespace
}  // namespace sluice
