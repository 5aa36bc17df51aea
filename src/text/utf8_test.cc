#include "text/utf8.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace sluice::text {
namespace {

std::string repaired(std::string_view text) {
  std::string storage;
  return std::string(repair_utf8(text, storage));
}

TEST(DecodeUtf8, ReadsEachLength) {
  const auto decode = [](std::string_view text) { return decode_utf8(text, 0); };
  EXPECT_EQ(decode("A").code, U'A');
  EXPECT_EQ(decode("\xc3\xa9").code, U'\u00e9');
  EXPECT_EQ(decode("\xe4\xb8\xad").code, U'\u4e2d');
  EXPECT_EQ(decode("\xf0\x9f\x9a\x80").code, U'\U0001f680');
  EXPECT_EQ(decode("\xf0\x9f\x9a\x80").bytes, 4u);
  EXPECT_EQ(decode("\xf4\x8f\xbf\xbf").code, 0x10ffffu);
  EXPECT_EQ(decode_utf8("a\xc3\xa9", 1).code, U'\u00e9');
}

TEST(DecodeUtf8, TellsAReplacementCharacterFromABadByte) {
  EXPECT_TRUE(decode_utf8("\xef\xbf\xbd", 0).valid());
  EXPECT_FALSE(decode_utf8("\xef\xbf", 0).valid());
  EXPECT_FALSE(decode_utf8("\xff", 0).valid());
}

TEST(AppendUtf8, IsTheInverseOfDecoding) {
  for (char32_t code = 0; code <= 0x10ffff; code += code < 0x3000 ? 1 : 37) {
    std::string text;
    append_utf8(code, text);
    const Utf8Char decoded = decode_utf8(text, 0);
    ASSERT_EQ(decoded.code, code);
    ASSERT_EQ(decoded.bytes, text.size());
  }
}

TEST(RepairUtf8, KeepsGoodTextWhereItIs) {
  const std::string_view text = "plain, caf\xc3\xa9 \xe4\xb8\xad \xf0\x9f\x9a\x80";
  std::string storage;
  EXPECT_EQ(repair_utf8(text, storage).data(), text.data());
  EXPECT_EQ(repaired(""), "");
}

TEST(RepairUtf8, ReplacesEachBadByte) {
  const std::string r = "\xef\xbf\xbd";
  EXPECT_EQ(repaired("\x80"), r);
  EXPECT_EQ(repaired("abc\xc3"), "abc" + r);
  EXPECT_EQ(repaired("caf\xe9 na\xefve"), "caf" + r + " na" + r + "ve");
  EXPECT_EQ(repaired("\xe2\x82 \xf0\x9f\x98 end"), r + r + " " + r + r + r + " end");
  EXPECT_EQ(repaired("\xc0\xaf \xe0\x80\xaf"), r + r + " " + r + r + r) << "overlong";
  EXPECT_EQ(repaired("\xf0\x8f\xbf\xbf"), r + r + r + r) << "overlong";
  EXPECT_EQ(repaired("\xf4\x90\x80\x80"), r + r + r + r) << "beyond U+10FFFF";
  EXPECT_EQ(repaired("\xf8\x88\x80\x80\x80"), r + r + r + r + r);
  EXPECT_EQ(repaired("12345678\xff"
                     "12345678"),
            "12345678" + r + "12345678");
}

TEST(RepairUtf8, LetsSurrogatesThrough) {
  EXPECT_EQ(repaired("\xed\xa0\x80\xed\xb0\x80"), "\xed\xa0\x80\xed\xb0\x80");
}

TEST(AsciiEnd, StopsAtTheFirstHighByte) {
  for (size_t length = 0; length < 40; ++length) {
    std::string text(length, 'x');
    EXPECT_EQ(ascii_end(text, 0), length);
    for (size_t from = 0; from <= length; ++from)
      EXPECT_EQ(ascii_end(text + "\x80 more text", from), length);
  }
}

}  // namespace
}  // namespace sluice::text
