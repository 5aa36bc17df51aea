#include "io/prefetch_plan.h"

#include <gtest/gtest.h>

namespace sluice::io {
namespace {

// 512 KiB take 175 us at 3 GB/s, 75 at 7 and 1049 at 0.5; to find and to look take 150, 110, 150.
TEST(PrefetchDepth, IsWhatKeepsTheDriveBusy) {
  const auto depth = [](double bytes_per_s, double find_us, uint32_t most = 8) {
    const DeviceProfile profile{.bytes_per_s = bytes_per_s,
                                .latency_us = find_us + (1 << 20) / bytes_per_s * 1e6,
                                .read_bytes = 1 << 20};
    return plan_prefetch_depth(profile, 512 << 10, most);
  };
  EXPECT_EQ(depth(3e9, 100), 2u);
  EXPECT_EQ(depth(7e9, 60), 3u);
  EXPECT_EQ(depth(0.5e9, 100), 2u);
  EXPECT_EQ(depth(7e9, 400), 8u) << "1 + 6.01, rounded up";
  EXPECT_EQ(depth(7e9, 400, 4), 4u);
  EXPECT_EQ(depth(7e9, 400, 1), 1u);
}

TEST(PrefetchDepth, WithoutMeasurementsIsTheMost) {
  EXPECT_EQ(plan_prefetch_depth({}, 512 << 10, 4), 4u);
}

// Drives that serve in order come to 1 and a little, the virtual one to 2.4 (device_probe_test.cc).
TEST(PrefetchBesideDemand, IsNoneWhereFollowersDelayARead) {
  const auto beside = [](double delay) {
    return plan_prefetch_beside_demand({.delay_by_followers = delay}, 2);
  };
  EXPECT_EQ(beside(1.0), 2u);
  EXPECT_EQ(beside(1.4), 2u) << "chance";
  EXPECT_EQ(beside(1.6), 0u);
  EXPECT_EQ(beside(2.4), 0u);
  EXPECT_EQ(plan_prefetch_beside_demand({}, 2), 2u) << "not measured";
}

}  // namespace
}  // namespace sluice::io
