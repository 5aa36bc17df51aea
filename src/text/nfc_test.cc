#include "text/nfc.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "text/utf8.h"

namespace sluice::text {
namespace {

std::string utf8(std::u32string_view codes) {
  std::string text;
  for (const char32_t code : codes) append_utf8(code, text);
  return text;
}

std::string nfc(std::string_view text) {
  std::string storage;
  return std::string(to_nfc(text, storage));
}

std::string nfc(std::u32string_view codes) {
  return nfc(utf8(codes));
}

TEST(Nfc, LeavesTextInNfcWhereItIs) {
  for (const std::u32string_view codes :
       {U"", U"plain ASCII, long enough for the fast path", U"caf\u00e9", U"\u4e2d\u6587",
        U"\ud55c\uae00", U"\U0001f680\U0001f1eb\U0001f1f7", U"\ufffd"}) {
    const std::string text = utf8(codes);
    std::string storage;
    EXPECT_EQ(to_nfc(text, storage).data(), text.data());
  }
}

TEST(Nfc, ComposesLettersAndMarks) {
  EXPECT_EQ(nfc(U"e\u0301"), utf8(U"\u00e9"));
  EXPECT_EQ(nfc(U"cafe\u0301 A\u030a!"), utf8(U"caf\u00e9 \u00c5!"));
  EXPECT_EQ(nfc(U"u\u0308\u0304"), utf8(U"\u01d6"));
  EXPECT_EQ(nfc(U"\u01d5"), utf8(U"\u01d5"));
  EXPECT_EQ(nfc(U"\u0cc6\u0cc2\u0cd5"), utf8(U"\u0ccb"));
  EXPECT_EQ(nfc(U"\U00011099\U000110ba"), utf8(U"\U0001109a"));
}

TEST(Nfc, ReplacesSingletons) {
  EXPECT_EQ(nfc(U"\u212b\u2126"), utf8(U"\u00c5\u03a9"));
  EXPECT_EQ(nfc(U"a\u2000b"), utf8(U"a\u2002b"));
  EXPECT_EQ(nfc(U"\uf900\U0002f800"), utf8(U"\u8c48\u4e3d"));
}

TEST(Nfc, KeepsExcludedCompositionsApart) {
  EXPECT_EQ(nfc(U"\u0958"), utf8(U"\u0915\u093c"));
  EXPECT_EQ(nfc(U"\u2adc"), utf8(U"\u2add\u0338"));
  EXPECT_EQ(nfc(U"\u0344"), utf8(U"\u0308\u0301"));
  EXPECT_EQ(nfc(U"\U0001d15e"), utf8(U"\U0001d157\U0001d165"));
}

TEST(Nfc, OrdersMarks) {
  EXPECT_EQ(nfc(U"q\u0307\u0323"), utf8(U"q\u0323\u0307"));
  EXPECT_EQ(nfc(U"\u0f73\u0f71"), utf8(U"\u0f71\u0f71\u0f72"));
  EXPECT_EQ(nfc(U"a\u0315\u0300\u05ae\u0300b"), utf8(U"\u00e0\u05ae\u0300\u0315b"));
  EXPECT_EQ(nfc(U"a\u035c\u0315\u0300\u05aeb"), utf8(U"\u00e0\u05ae\u0315\u035cb"));
}

TEST(Nfc, RespectsWhatBlocks) {
  EXPECT_EQ(nfc(U"\u0303a\u0303"), utf8(U"\u0303\u00e3"));
  EXPECT_EQ(nfc(U"u\u0304\u0308"), utf8(U"\u1e7b"));
  EXPECT_EQ(nfc(U"\u0b47\u0300\u0b3e"), utf8(U"\u0b47\u0300\u0b3e"));
  EXPECT_EQ(nfc(U"\u1100\u0300\u1161"), utf8(U"\u1100\u0300\u1161"));
}

TEST(Nfc, ComposesHangul) {
  EXPECT_EQ(nfc(U"\u1111\u1171\u11b6"), utf8(U"\ud4db"));
  EXPECT_EQ(nfc(U"\u1112\u1161\u11ab\u1100\u1173\u11af"), utf8(U"\ud55c\uae00"));
  EXPECT_EQ(nfc(U"\uac00\u11a8"), utf8(U"\uac01"));
  EXPECT_EQ(nfc(U"\uac00\u11a7"), utf8(U"\uac00\u11a7"));
  EXPECT_EQ(nfc(U"\uac01\u11a8"), utf8(U"\uac01\u11a8"));
}

TEST(Nfc, IsIdempotentAndLocal) {
  Random random(11);
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    for (uint64_t i = random.below(12); i > 0; --i) {
      // Mostly letters, marks, jamo and syllables, where something happens.
      const char32_t bases[] = {'a', 0x300, 0x900, 0x1100, 0x1160, 0x11a0, 0xac00, 0x1e00};
      append_utf8(bases[random.below(8)] + static_cast<char32_t>(random.below(0x60)), text);
    }
    const std::string once = nfc(text);
    ASSERT_EQ(nfc(once), once);
    ASSERT_EQ(nfc("x " + text + " y"), "x " + nfc(" " + text).substr(1) + " y");
  }
}

TEST(Nfc, AMegabyteOfMarksIsNoTrouble) {
  std::string text = "a";
  while (text.size() < 1000000) text += utf8(U"\u0301\u0323");
  const std::string normal = nfc(text);
  EXPECT_EQ(normal.substr(0, 7), utf8(U"\u1ea1\u0323\u0323")) << "ạ, then the other dots below";
  EXPECT_EQ(normal.size(), text.size());
}

}  // namespace
}  // namespace sluice::text
