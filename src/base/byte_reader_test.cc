#include "base/byte_reader.h"

#include <gtest/gtest.h>

#include <array>

namespace sluice {
namespace {

TEST(ByteReader, ReadsLittleEndianInOrder) {
  const std::array<std::byte, 6> bytes{std::byte{1}, std::byte{0},   std::byte{0},
                                       std::byte{0}, std::byte{'h'}, std::byte{'i'}};
  ByteReader reader(bytes);
  EXPECT_EQ(reader.read<uint32_t>(), 1u);
  EXPECT_EQ(reader.take_text(2), "hi");
  EXPECT_TRUE(reader.ok());
  EXPECT_EQ(reader.left(), 0u);
}

TEST(ByteReader, FailsOnceAndStaysFailed) {
  const std::array<std::byte, 3> bytes{std::byte{9}, std::byte{9}, std::byte{9}};
  ByteReader reader(bytes);
  EXPECT_EQ(reader.read<uint32_t>(), 0u);
  EXPECT_FALSE(reader.ok());
  EXPECT_EQ(reader.read<uint8_t>(), 0u) << "a failed reader gives zeros, not what happens to fit";
  EXPECT_TRUE(reader.take(UINT64_MAX).empty());
}

}  // namespace
}  // namespace sluice
