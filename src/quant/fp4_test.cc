#include "quant/fp4.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(Fp4, PowersOfTwoFromEndToEnd) {
  EXPECT_EQ(half_of_e8m0(0), 0x1p-128f);
  EXPECT_EQ(half_of_e8m0(1), 0x1p-127f);
  EXPECT_EQ(half_of_e8m0(2), 0x1p-126f);
  EXPECT_EQ(half_of_e8m0(127), 0.5f);
  EXPECT_EQ(half_of_e8m0(254), 0x1p126f);
  EXPECT_EQ(half_of_e8m0(255), 0x1p127f);
}

TEST(Fp4, ScalesOfEightBits) {
  EXPECT_EQ(half_of_e4m3(0x00), 0.0f);
  EXPECT_EQ(half_of_e4m3(0x01), 0x1p-10f) << "subnormal";
  EXPECT_EQ(half_of_e4m3(0x07), 7 * 0x1p-10f);
  EXPECT_EQ(half_of_e4m3(0x08), 0x1p-7f);
  EXPECT_EQ(half_of_e4m3(0x3d), 0.5f * 1.625f);
  EXPECT_EQ(half_of_e4m3(0x7e), 224.0f);
  EXPECT_EQ(half_of_e4m3(0x7f), 0.0f) << "a NaN by its standard";
  EXPECT_EQ(half_of_e4m3(0x80), 0.0f);
  EXPECT_EQ(half_of_e4m3(0xbd), 0.5f * 1.625f) << "no sign";
  EXPECT_EQ(half_of_e4m3(0xff), 240.0f);
}

}  // namespace
}  // namespace sluice
