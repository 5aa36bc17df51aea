#include "text/unicode.h"

#include <gtest/gtest.h>

#include "text/unicode_tables.h"

namespace sluice::text {
namespace {

TEST(Category, OfCharactersThatStandForTheirs) {
  EXPECT_EQ(category(0), Category::control);
  EXPECT_EQ(category('A'), Category::uppercase_letter);
  EXPECT_EQ(category('a'), Category::lowercase_letter);
  EXPECT_EQ(category(0x01c5), Category::titlecase_letter);  // ǅ
  EXPECT_EQ(category(0x02b0), Category::modifier_letter);   // ʰ
  EXPECT_EQ(category(0x4e2d), Category::other_letter);      // 中
  EXPECT_EQ(category(0x0301), Category::nonspacing_mark);   // acute accent
  EXPECT_EQ(category(0x093e), Category::spacing_mark);      // Devanagari aa
  EXPECT_EQ(category(0x20dd), Category::enclosing_mark);    // enclosing circle
  EXPECT_EQ(category('7'), Category::decimal_number);
  EXPECT_EQ(category(0x2163), Category::letter_number);  // Ⅳ
  EXPECT_EQ(category(0x00bd), Category::other_number);   // ½
  EXPECT_EQ(category('_'), Category::connector_punctuation);
  EXPECT_EQ(category(0x2014), Category::dash_punctuation);  // em dash
  EXPECT_EQ(category('('), Category::open_punctuation);
  EXPECT_EQ(category(']'), Category::close_punctuation);
  EXPECT_EQ(category(0x201c), Category::initial_punctuation);  // “
  EXPECT_EQ(category(0x201d), Category::final_punctuation);    // ”
  EXPECT_EQ(category('!'), Category::other_punctuation);
  EXPECT_EQ(category('+'), Category::math_symbol);
  EXPECT_EQ(category(0x20ac), Category::currency_symbol);  // €
  EXPECT_EQ(category('^'), Category::modifier_symbol);
  EXPECT_EQ(category(0x1f680), Category::other_symbol);  // 🚀
  EXPECT_EQ(category(0x3000), Category::space_separator);
  EXPECT_EQ(category(0x2028), Category::line_separator);
  EXPECT_EQ(category(0x2029), Category::paragraph_separator);
  EXPECT_EQ(category(0x200b), Category::format);
  EXPECT_EQ(category(0xd800), Category::surrogate);
  EXPECT_EQ(category(0xe000), Category::private_use);
  EXPECT_EQ(category(0x0378), Category::unassigned);
  EXPECT_EQ(category(0x10ffff), Category::unassigned);
}

TEST(Category, ChangesExactlyAtTheEdgesOfARun) {
  EXPECT_EQ(category('@'), Category::other_punctuation);
  EXPECT_EQ(category('Z'), Category::uppercase_letter);
  EXPECT_EQ(category('['), Category::open_punctuation);
  EXPECT_EQ(category(0x4dff), Category::other_symbol);
  EXPECT_EQ(category(0x4e00), Category::other_letter);
  EXPECT_EQ(category(0x9fff), Category::other_letter);
  EXPECT_EQ(category(0xa000), Category::other_letter);
  EXPECT_EQ(category(0xdfff), Category::surrogate);
  EXPECT_EQ(category(0x30000), Category::other_letter);
}

TEST(Category, PredicatesPartitionAllCharacters) {
  size_t counts[5] = {};
  for (char32_t code = 0; code < 0x110000; ++code) {
    const Category c = category(code);
    const bool kinds[] = {is_letter(c), is_mark(c), is_number(c), is_punctuation(c), is_symbol(c)};
    int matching = 0;
    for (size_t i = 0; i < 5; ++i) {
      matching += kinds[i] ? 1 : 0;
      counts[i] += kinds[i] ? 1 : 0;
    }
    ASSERT_EQ(matching, c < Category::space_separator ? 1 : 0) << uint32_t{code};
  }
  // As the Unicode Character Database 15.1 counts them.
  EXPECT_EQ(counts[0], 136726u);
  EXPECT_EQ(counts[1], 2450u);
  EXPECT_EQ(counts[2], 1831u);
  EXPECT_EQ(counts[3], 842u);
  EXPECT_EQ(counts[4], 7775u);
}

TEST(IsSpace, CountsTheWhiteSpaceProperty) {
  size_t count = 0;
  for (char32_t code = 0; code < 0x110000; ++code) count += is_space(code) ? 1 : 0;
  EXPECT_EQ(count, 25u);
  EXPECT_TRUE(is_space('\t') && is_space('\r') && is_space(0x85) && is_space(0x3000));
  EXPECT_FALSE(is_space(0x1c) || is_space(0x200b) || is_space(0xfeff) || is_space(0x180e));
}

TEST(UnicodeTables, AreSorted) {
  const auto sorted = [](auto table, auto key) {
    for (size_t i = 1; i < table.size(); ++i)
      if (!(key(table[i - 1]) < key(table[i]))) return false;
    return !table.empty();
  };
  EXPECT_TRUE(sorted(kCategoryStarts, [](uint32_t entry) { return entry >> 5; }));
  EXPECT_TRUE(sorted(kNormalizationStarts, [](uint32_t entry) { return entry >> 9; }));
  EXPECT_TRUE(sorted(kDecompositions, [](const Decomposition& d) { return d.code; }));
  EXPECT_TRUE(sorted(kCompositions,
                     [](const Composition& c) { return uint64_t{c.first} << 32 | c.second; }));
  EXPECT_EQ(kCategoryStarts[0] >> 5, 0u);
  EXPECT_EQ(kNormalizationStarts[0] >> 9, 0u);
}

}  // namespace
}  // namespace sluice::text
