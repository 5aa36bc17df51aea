#include <gtest/gtest.h>

#include "base/random.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

namespace sluice::text {
namespace {

TEST(Utf8Stream, HoldsBackAnIncompleteCharacter) {
  Utf8Stream stream;
  EXPECT_EQ(stream.push("a\xf0"), "a");
  EXPECT_EQ(stream.push("\x9f"), "");
  EXPECT_EQ(stream.push("\x9a"), "");
  EXPECT_EQ(stream.push("\x80z"), "\xf0\x9f\x9a\x80z");
  EXPECT_EQ(stream.flush(), "");
}

TEST(Utf8Stream, PassesOnWhatCanNeverBecomeACharacter) {
  Utf8Stream stream;
  EXPECT_EQ(stream.push("\x80"), "\x80");
  EXPECT_EQ(stream.push("\xff"), "\xff");
  EXPECT_EQ(stream.push("\xc0"), "\xc0");
  EXPECT_EQ(stream.push("\xe0\x80"), "\xe0\x80") << "overlong";
  EXPECT_EQ(stream.push("\xf4\x90"), "\xf4\x90") << "beyond U+10FFFF";
  EXPECT_EQ(stream.push("\xe4\xb8"), "");
  EXPECT_EQ(stream.push("x"), "\xe4\xb8x") << "refuted";
  EXPECT_EQ(stream.push("\xe4\xe4"), "\xe4");
  EXPECT_EQ(stream.push("\xb8\xad"), "\xe4\xb8\xad");
  EXPECT_EQ(stream.flush(), "");
}

TEST(Utf8Stream, FlushesWhatIsHeld) {
  Utf8Stream stream;
  EXPECT_EQ(stream.push("a\xe4\xb8"), "a");
  EXPECT_EQ(stream.flush(), "\xe4\xb8");
  EXPECT_EQ(stream.flush(), "");
  EXPECT_EQ(stream.push("b"), "b");
}

TEST(Utf8Stream, AnyChunksJoinToTheWholeAndCutNoCharacter) {
  Random random(3);
  for (int round = 0; round < 500; ++round) {
    std::string text;
    for (int i = 0; i < 20; ++i) append_utf8(static_cast<char32_t>(random.below(0x3000)), text);
    append_utf8(0x1f680, text);
    Utf8Stream stream;
    std::string joined;
    for (size_t at = 0; at < text.size();) {
      const size_t bytes = random.below(6);
      const std::string ready = stream.push(std::string_view(text).substr(at, bytes));
      std::string storage;
      EXPECT_EQ(repair_utf8(ready, storage), ready);
      joined += ready;
      at += bytes;
    }
    EXPECT_EQ(joined, text);
    EXPECT_EQ(stream.flush(), "");
  }
}

}  // namespace
}  // namespace sluice::text
