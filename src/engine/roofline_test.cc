#include "engine/roofline.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

// 10 s, 4 of them stall; 14 GB from a drive of 2 GB/s, 30 GB from memory of 10 GB/s.
constexpr RooflineInput kDriveBound{.measured_s = 10,
                                    .stall_s = 4,
                                    .drive_bytes = 14'000'000'000,
                                    .drive_bytes_per_s = 2e9,
                                    .ram_bytes = 30'000'000'000,
                                    .ram_bytes_per_s = 1e10};

TEST(Roofline, TheDriveIsTheFloor) {
  const Roofline roof = roofline_of(kDriveBound);
  EXPECT_DOUBLE_EQ(roof.drive_s, 7);
  EXPECT_DOUBLE_EQ(roof.ram_s, 3);
  EXPECT_DOUBLE_EQ(roof.compute_s, 6);
  EXPECT_DOUBLE_EQ(roof.floor_s, 7);
  EXPECT_EQ(roof.limit, "drive");
  EXPECT_DOUBLE_EQ(roof.reached, 0.7);
}

TEST(Roofline, ComputingIsTheFloor) {
  RooflineInput input = kDriveBound;
  input.stall_s = 1;
  const Roofline roof = roofline_of(input);
  EXPECT_DOUBLE_EQ(roof.compute_s, 9);
  EXPECT_EQ(roof.limit, "compute");
  EXPECT_DOUBLE_EQ(roof.reached, 0.9);
}

TEST(Roofline, MemoryIsTheFloor) {
  RooflineInput input = kDriveBound;
  input.ram_bytes_per_s = 4e9;
  const Roofline roof = roofline_of(input);
  EXPECT_DOUBLE_EQ(roof.floor_s, 7.5);
  EXPECT_EQ(roof.limit, "memory");
  EXPECT_DOUBLE_EQ(roof.reached, 0.75);
}

TEST(Roofline, AProbeThatWasTooLowNeverGivesMoreThanAll) {
  RooflineInput input = kDriveBound;
  input.drive_bytes_per_s = 1e9;  // 14 s for what took 10
  EXPECT_DOUBLE_EQ(roofline_of(input).reached, 1);
}

TEST(Roofline, UnknownRatesCountNothing) {
  RooflineInput input = kDriveBound;
  input.drive_bytes_per_s = 0;
  input.ram_bytes_per_s = 0;
  const Roofline roof = roofline_of(input);
  EXPECT_EQ(roof.drive_s, 0);
  EXPECT_EQ(roof.ram_s, 0);
  EXPECT_EQ(roof.limit, "compute");
  EXPECT_DOUBLE_EQ(roof.reached, 0.6);
}

TEST(Roofline, NoStepsGiveZeros) {
  const Roofline roof = roofline_of({});
  EXPECT_EQ(roof.floor_s, 0);
  EXPECT_EQ(roof.reached, 0);
}

TEST(Roofline, StallNeverExceedsTheWhole) {
  EXPECT_EQ(roofline_of({.measured_s = 1, .stall_s = 1.001}).compute_s, 0);
}

}  // namespace
}  // namespace sluice
