#include "base/random.h"

#include <gtest/gtest.h>

#include <array>

namespace sluice {
namespace {

// The sequence that the reference implementation gives for this seed.
TEST(Random, IsSplitMix64) {
  Random random(1234567);
  for (const uint64_t expected : {6457827717110365317u, 3203168211198807973u, 9817491932198370423u,
                                  4593380528125082431u, 16408922859458223821u})
    EXPECT_EQ(random.next(), expected);
}

TEST(Random, StaysInItsRanges) {
  Random random(5);
  std::array<int, 7> counts{};
  double sum = 0;
  for (int i = 0; i < 70'000; ++i) {
    ++counts.at(random.below(7));
    const double value = random.uniform();
    ASSERT_GE(value, 0.0);
    ASSERT_LT(value, 1.0);
    sum += value;
  }
  for (const int count : counts) EXPECT_NEAR(count, 10'000, 500);
  EXPECT_NEAR(sum / 70'000, 0.5, 0.01);
  EXPECT_EQ(random.below(1), 0u);
}

}  // namespace
}  // namespace sluice
