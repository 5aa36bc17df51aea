#include "model/rope.h"

#include <gtest/gtest.h>

#include <cmath>

namespace sluice {
namespace {

TEST(Rope, FrequenciesFallByPowersOfTheBase) {
  const RopeAngles angles = rope_angles({.rotated_dim = 8, .base = 10000.0}, {});
  ASSERT_EQ(angles.frequencies.size(), 4u);
  EXPECT_DOUBLE_EQ(angles.frequencies[0], 1.0);
  EXPECT_DOUBLE_EQ(angles.frequencies[1], 0.1);
  EXPECT_DOUBLE_EQ(angles.frequencies[3], 0.001);
  EXPECT_EQ(angles.magnitude, 1.0f);
}

TEST(Rope, LinearScalingSlowsAllDown) {
  const RopeAngles angles =
      rope_angles({.rotated_dim = 4, .scaling = RopeScaling::linear, .factor = 4.0}, {});
  EXPECT_DOUBLE_EQ(angles.frequencies[0], 0.25);
  EXPECT_DOUBLE_EQ(angles.frequencies[1], 0.0025);
  EXPECT_EQ(angles.magnitude, 1.0f);
}

TEST(Rope, DivisorsSlowTheirPairDown) {
  const float divisors[] = {1.0f, 8.0f};
  const RopeAngles angles = rope_angles({.rotated_dim = 4}, divisors);
  EXPECT_DOUBLE_EQ(angles.frequencies[0], 1.0);
  EXPECT_DOUBLE_EQ(angles.frequencies[1], 0.01 / 8);
}

TEST(Rope, TheMagnitudeMayBeGiven) {
  EXPECT_EQ(rope_angles({.rotated_dim = 4, .magnitude = 0.5}, {}).magnitude, 0.5f);
  const RopeConfig yarn{.rotated_dim = 4,
                        .scaling = RopeScaling::yarn,
                        .factor = 4.0,
                        .original_context_tokens = 64,
                        .magnitude = 0.5};
  EXPECT_FLOAT_EQ(rope_angles(yarn, {}).magnitude,
                  static_cast<float>(0.5 * (1 + 0.1 * std::log(4.0))));
}

/// 64 elements, base 150000, 4096 positions: a pair turns 32 times at 8.1 and once at 17.4, so that
/// pairs up to 8 stay, those from 18 on are slowed down, and 13 is half of each.
TEST(Rope, YarnMixesByHowOftenAPairTurns) {
  const RopeConfig config{.rotated_dim = 64,
                          .base = 150000.0,
                          .scaling = RopeScaling::yarn,
                          .factor = 32.0,
                          .original_context_tokens = 4096};
  const RopeAngles angles = rope_angles(config, {});
  const auto plain = [](int pair) { return std::pow(150000.0, -2.0 * pair / 64); };
  EXPECT_DOUBLE_EQ(angles.frequencies[0], 1.0);
  EXPECT_DOUBLE_EQ(angles.frequencies[8], plain(8));
  EXPECT_DOUBLE_EQ(angles.frequencies[13], plain(13) * (0.5 + 0.5 / 32));
  EXPECT_DOUBLE_EQ(angles.frequencies[18], plain(18) / 32);
  EXPECT_DOUBLE_EQ(angles.frequencies[31], plain(31) / 32);
  EXPECT_FLOAT_EQ(angles.magnitude, static_cast<float>(1 + 0.1 * std::log(32.0)));
}

/// As above; half of the mixing leaves pairs that turn often half slowed down.
TEST(Rope, YarnMayMixLess) {
  RopeConfig config{.rotated_dim = 64,
                    .base = 150000.0,
                    .scaling = RopeScaling::yarn,
                    .factor = 32.0,
                    .original_context_tokens = 4096};
  config.mix = 0.5;
  const RopeAngles angles = rope_angles(config, {});
  EXPECT_DOUBLE_EQ(angles.frequencies[0], 0.5 + 0.5 / 32);
  EXPECT_DOUBLE_EQ(angles.frequencies[31], std::pow(150000.0, -62.0 / 64) / 32);
}

}  // namespace
}  // namespace sluice
