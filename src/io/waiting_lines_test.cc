#include "io/waiting_lines.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

#include "base/random.h"

namespace sluice::io {
namespace {

TEST(WaitingLines, FirstComeFirstServedWithinAClass) {
  WaitingLines lines(5);
  for (const uint32_t request : {3u, 0u, 4u}) lines.push_back(ReadClass::prefetch, request);
  lines.push_back(ReadClass::demand, 1);
  EXPECT_EQ(lines.front(ReadClass::demand), 1u);
  EXPECT_TRUE(lines.is_empty(ReadClass::load));
  for (const uint32_t request : {3u, 0u, 4u}) {
    ASSERT_FALSE(lines.is_empty(ReadClass::prefetch));
    EXPECT_EQ(lines.front(ReadClass::prefetch), request);
    lines.remove(request);
  }
  EXPECT_TRUE(lines.is_empty(ReadClass::prefetch));
}

TEST(WaitingLines, LeavingTwiceIsLeavingOnce) {
  WaitingLines lines(3);
  lines.push_back(ReadClass::load, 2);
  lines.push_back(ReadClass::load, 1);
  lines.remove(2);
  lines.remove(2);
  lines.remove(0);
  EXPECT_FALSE(lines.waits(2));
  EXPECT_TRUE(lines.waits(1));
  EXPECT_EQ(lines.front(ReadClass::load), 1u);
}

TEST(WaitingLinesDeathTest, OurOwnMistakesStopTheProcess) {
  WaitingLines lines(2);
  EXPECT_DEATH(lines.front(ReadClass::demand), "check failed");
  lines.push_back(ReadClass::demand, 0);
  EXPECT_DEATH(lines.push_back(ReadClass::load, 0), "check failed") << "it stands in a line";
}

TEST(WaitingLines, AgreeWithDequesWhateverComesAndGoes) {
  constexpr uint32_t kRequests = 9;
  WaitingLines lines(kRequests);
  std::deque<uint32_t> expected[kReadClassCount];
  Random random(1);
  for (int step = 0; step < 20'000; ++step) {
    const auto request = static_cast<uint32_t>(random.below(kRequests));
    if (lines.waits(request)) {
      lines.remove(request);
      for (auto& line : expected) std::erase(line, request);
    } else {
      const auto read_class = static_cast<ReadClass>(random.below(kReadClassCount));
      lines.push_back(read_class, request);
      expected[static_cast<size_t>(read_class)].push_back(request);
    }
    for (const ReadClass read_class : kReadClasses) {
      const auto& line = expected[static_cast<size_t>(read_class)];
      ASSERT_EQ(lines.is_empty(read_class), line.empty());
      if (line.empty()) continue;
      ASSERT_EQ(lines.front(read_class), line.front());
    }
  }
}

}  // namespace
}  // namespace sluice::io
