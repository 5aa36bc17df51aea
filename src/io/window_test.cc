#include "io/window.h"

#include <gtest/gtest.h>

namespace sluice::io {
namespace {

TEST(Window, WorkedExampleOfTheHeader) {
  const auto window = window_of({.file = 0, .offset = 5000, .bytes = 4000}, 4096);
  EXPECT_EQ(window.offset, 4096u);
  EXPECT_EQ(window.bytes, 8192u);
  EXPECT_EQ(window.head, 904u);
}

TEST(Window, CoversEveryResidueWithinItsBound) {
  constexpr uint64_t kAlignment = 512;
  for (uint64_t offset = 1 << 20; offset < (1 << 20) + kAlignment; ++offset) {
    for (const uint64_t bytes : {1u, 511u, 512u, 513u, 5000u}) {
      const auto window = window_of({0, offset, bytes}, kAlignment);
      EXPECT_EQ(window.offset % kAlignment, 0u);
      EXPECT_EQ(window.bytes % kAlignment, 0u);
      EXPECT_LT(window.head, kAlignment);
      EXPECT_EQ(window.offset + window.head, offset);
      EXPECT_GE(window.offset + window.bytes, offset + bytes);
      EXPECT_LT(window.offset + window.bytes, offset + bytes + kAlignment);
      EXPECT_LE(window.bytes, window_bytes_max(bytes, kAlignment));
    }
  }
}

TEST(Window, GranularOffsetsNeedLessRoom) {
  EXPECT_EQ(window_bytes_max(4096, 4096, 4096), 4096u) << "aligned files need no room at all";
  EXPECT_EQ(window_bytes_max(4096, 4096, 32), 8192u);
  EXPECT_EQ(window_bytes_max(4096 + 32, 4096, 32), 8192u);
  EXPECT_EQ(window_bytes_max(4096 + 33, 4096, 32), 12288u);
}

}  // namespace
}  // namespace sluice::io
