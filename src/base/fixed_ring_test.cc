#include "base/fixed_ring.h"

#include <gtest/gtest.h>

#include <deque>
#include <memory>

#include "base/random.h"

namespace sluice {
namespace {

TEST(FixedRing, IsAQueueWhateverTheOrder) {
  for (const size_t capacity : {1, 2, 7, 64}) {
    Random random(capacity);
    FixedRing<uint64_t> ring(capacity);
    std::deque<uint64_t> model;
    for (int step = 0; step < 20'000; ++step) {
      if (random.below(1000) == 0) {
        ring.clear();
        model.clear();
      } else if (random.below(2) == 0 && model.size() < capacity) {
        model.push_back(random.next());
        ring.push_back(model.back());
      } else if (!model.empty()) {
        ASSERT_EQ(ring.front(), model.front());
        ring.pop_front();
        model.pop_front();
      }
      ASSERT_EQ(ring.size(), model.size());
      ASSERT_EQ(ring.empty(), model.empty());
      if (model.empty()) continue;
      const size_t index = random.below(model.size());
      ASSERT_EQ(ring[index], model[index]);
    }
  }
}

TEST(FixedRing, HoldsWhatCanOnlyBeMoved) {
  FixedRing<std::unique_ptr<int>> ring(2);
  ring.push_back(std::make_unique<int>(5));
  EXPECT_EQ(*ring.front(), 5);
}

TEST(FixedRingDeathTest, ItsLimitsAreChecked) {
  FixedRing<int> ring(2);
  EXPECT_DEATH(ring.front(), "check failed");
  EXPECT_DEATH(ring.pop_front(), "check failed");
  EXPECT_DEATH(ring[0], "check failed");
  ring.push_back(1);
  ring.push_back(2);
  EXPECT_DEATH(ring.push_back(3), "check failed");
}

}  // namespace
}  // namespace sluice
