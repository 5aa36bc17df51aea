#include "os/clock.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace sluice::os {
namespace {

TEST(Clock, CountsNanosecondsForward) {
  const uint64_t start = now_ns();
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const uint64_t end = now_ns();
  EXPECT_GE(end - start, 5'000'000u);
  EXPECT_LT(end - start, 5'000'000'000u);
  for (uint64_t last = end, i = 0; i < 1000; ++i) {
    const uint64_t now = now_ns();
    ASSERT_GE(now, last);
    last = now;
  }
}

TEST(Clock, SecondsBetweenTwoReadings) {
  EXPECT_DOUBLE_EQ(seconds_between(1'000'000'000, 3'500'000'000), 2.5);
}

}  // namespace
}  // namespace sluice::os
