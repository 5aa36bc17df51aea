#include "quant/code_books.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <set>

#include "quant/code_book_blocks.h"

namespace sluice {
namespace {

/// The authors of the formats numbered the entries so that, read backwards, they ascend; a digit
/// lost or changed in the tables would hardly leave them so.
template <size_t kCount, size_t kLength>
void expect_ascending(const CodeBook<kCount, kLength>& book, size_t level_count) {
  std::set<int8_t> levels;
  for (size_t e = 0; e < kCount; ++e) {
    const int8_t* codes = book.codes[e];
    levels.insert(codes, codes + kLength);
    if (e == 0) continue;
    const int8_t* before = book.codes[e - 1];
    EXPECT_TRUE(std::lexicographical_compare(
        std::reverse_iterator(before + kLength), std::reverse_iterator(before),
        std::reverse_iterator(codes + kLength), std::reverse_iterator(codes)))
        << "entry " << e;
  }
  EXPECT_EQ(levels.size(), level_count);
}

TEST(CodeBooks, EntriesAscendAndUseEveryLevel) {
  expect_ascending(kBookIq2Xxs, 3);
  expect_ascending(kBookIq2Xs, 3);
  expect_ascending(kBookIq2S, 3);
  expect_ascending(kBookIq3Xxs, 8);
  expect_ascending(kBookIq3S, 8);
  expect_ascending(kBookIq1, 3);
}

TEST(CodeBooks, TheEighthSignMakesTheNumberOfMinusesEven) {
  BlockIQ2_XS block = {};
  for (uint32_t sevens = 0; sevens < 128; ++sevens) {
    const auto word = static_cast<uint16_t>(sevens << 9);
    std::memcpy(block.qs, &word, sizeof(word));
    const CodedBlock coded = unpack_coded(block);
    uint32_t signs = 0;
    for (size_t i = 0; i < 8; ++i) signs |= (coded.q[i] < 0 ? 1u : 0u) << i;
    EXPECT_EQ(signs & 127, sevens);
    EXPECT_EQ(std::popcount(signs) % 2, 0);
  }
}

}  // namespace
}  // namespace sluice
