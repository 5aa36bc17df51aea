#include "os/arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "base/units.h"
#include "os/memory.h"

namespace sluice::os {
namespace {

constexpr uint64_t kPage = 4096;

bool is_aligned(const void* place, uint64_t alignment) {
  return reinterpret_cast<uintptr_t>(place) % alignment == 0;
}

bool all_zero(const std::byte* begin, uint64_t bytes) {
  return std::all_of(begin, begin + bytes, [](std::byte b) { return b == std::byte{0}; });
}

TEST(Arena, SmallOnesAreWholePagesOfZeros) {
  const auto arena = Arena::allocate(5000, "a test");
  ASSERT_TRUE(arena.ok()) << arena.error().message;
  EXPECT_GE(arena->bytes(), 5000u);
  EXPECT_LT(arena->bytes(), 2 * kMiB);
  EXPECT_EQ(arena->bytes() % kPage, 0u);
  EXPECT_TRUE(is_aligned(arena->begin(), kPage));
  EXPECT_TRUE(all_zero(arena->begin(), arena->bytes()));
}

TEST(Arena, LargeOnesBeginAndEndOnHugePages) {
  // Several at once: the system would not align them all by chance.
  for (const uint64_t bytes : {2 * kMiB, 2 * kMiB + 1, 7 * kMiB - 3}) {
    const auto first = Arena::allocate(bytes, "a test");
    const auto second = Arena::allocate(bytes, "a test");
    ASSERT_TRUE(first.ok() && second.ok());
    for (const Arena* arena : {&*first, &*second}) {
      EXPECT_TRUE(is_aligned(arena->begin(), 2 * kMiB));
      EXPECT_EQ(arena->bytes(), round_up(bytes, 2 * kMiB));
      std::memset(arena->begin(), 0x5a, arena->bytes());  // Every byte is ours to write.
    }
  }
}

TEST(Arena, NothingIsAnArenaToo) {
  const auto arena = Arena::allocate(0, "nothing");
  ASSERT_TRUE(arena.ok());
  EXPECT_EQ(arena->bytes(), 0u);
}

TEST(Arena, RefusalNamesPurposeAndSize) {
  for (const uint64_t bytes : {UINT64_MAX, UINT64_MAX - 4 * kMiB, uint64_t{1} << 60}) {
    const auto arena = Arena::allocate(bytes, "the KV cache");
    ASSERT_FALSE(arena.ok());
    EXPECT_EQ(arena.error().kind, ErrorKind::memory);
    EXPECT_NE(arena.error().message.find("the KV cache"), std::string::npos);
    EXPECT_NE(arena.error().message.find(format_bytes(bytes)), std::string::npos);
  }
}

TEST(Arena, MovingHandsTheMemoryOver) {
  auto made = Arena::allocate(kPage, "a test");
  ASSERT_TRUE(made.ok());
  Arena first = std::move(*made);
  *first.as<uint32_t>(8) = 77;
  Arena second = std::move(first);
  EXPECT_EQ(first.begin(), nullptr);  // NOLINT(bugprone-use-after-move): what is left is defined
  EXPECT_EQ(first.bytes(), 0u);
  EXPECT_EQ(*second.as<uint32_t>(8), 77u);
  second = Arena();
  EXPECT_EQ(second.begin(), nullptr);
}

TEST(Arena, ReleasedPagesReadAsZerosAndLeaveTheResidentSet) {
  constexpr uint64_t kBytes = 64 * kMiB;
  auto arena = Arena::allocate(kBytes, "a test");
  ASSERT_TRUE(arena.ok());
  std::memset(arena->begin(), 0xab, kBytes);
  const uint64_t full = resident_bytes();
  arena->release_pages(kPage, kBytes - 2 * kPage);
  EXPECT_TRUE(all_zero(arena->begin() + kPage, kBytes - 2 * kPage - kMiB));
  EXPECT_EQ(arena->begin()[kPage - 1], std::byte{0xab});
  EXPECT_EQ(arena->begin()[kBytes - kPage], std::byte{0xab});
  arena->release_pages(0, kBytes);
  EXPECT_LT(resident_bytes() + kBytes * 3 / 4, full);
}

/// A slot's range, as a cache gives it back: it begins and ends inside of huge pages.
TEST(Arena, ARangeInsideHugePagesGoesAndComesBackAsItIsTouched) {
  constexpr uint64_t kBytes = 64 * kMiB;
  constexpr uint64_t kBegin = 5 * kMiB + kPage, kRange = 37 * kMiB + 3 * kPage;
  auto arena = Arena::allocate(kBytes, "a test");
  ASSERT_TRUE(arena.ok());
  EXPECT_EQ(arena->resident_bytes(0, kBytes), 0u) << "untouched";
  std::memset(arena->begin(), 0x77, kBytes);
  EXPECT_EQ(arena->resident_bytes(0, kBytes), kBytes);
  const uint64_t full = resident_bytes();

  arena->release_pages(kBegin, kRange);
  EXPECT_EQ(arena->resident_bytes(kBegin, kRange), 0u);
  EXPECT_EQ(arena->resident_bytes(0, kBytes), kBytes - kRange) << "and nothing else went";
  EXPECT_NEAR(static_cast<double>(full - resident_bytes()), kRange, kMiB);
  EXPECT_EQ(arena->begin()[kBegin - 1], std::byte{0x77});
  EXPECT_EQ(arena->begin()[kBegin + kRange], std::byte{0x77});

  arena->reuse_pages(kBegin, kRange);
  EXPECT_EQ(arena->resident_bytes(kBegin, kRange), 0u) << "taking it again touches nothing";
  std::memset(arena->begin() + kBegin, 0x33, kRange / kPage / 2 * kPage);
  const uint64_t half = arena->resident_bytes(kBegin, kRange);
  EXPECT_GE(half, kRange / 2 - kPage);
  EXPECT_LE(half, kRange / 2 + 2 * kMiB) << "at most one huge page ahead";
  std::memset(arena->begin() + kBegin, 0x33, kRange);
  EXPECT_EQ(arena->resident_bytes(0, kBytes), kBytes);
  EXPECT_NEAR(static_cast<double>(resident_bytes()), static_cast<double>(full), kMiB);
}

TEST(ArenaDeathTest, ReleaseDemandsWholePagesInside) {
  auto arena = Arena::allocate(4 * kPage, "a test");
  ASSERT_TRUE(arena.ok());
  EXPECT_DEATH(arena->release_pages(1, kPage), "check failed");
  EXPECT_DEATH(arena->release_pages(kPage, 4 * kPage), "check failed");
  EXPECT_DEATH(arena->reuse_pages(0, 5 * kPage), "check failed");
  EXPECT_DEATH(static_cast<void>(arena->resident_bytes(0, 1)), "check failed");
}

}  // namespace
}  // namespace sluice::os
