#include "text/special_tokens.h"

#include <gtest/gtest.h>

#include <string>

#include "base/random.h"

namespace sluice::text {
namespace {

std::vector<TokenId> tokens_in(const SpecialTokens& special, std::string_view text) {
  std::vector<TokenId> found;
  for (auto match = special.find(text, 0); match.token != kNoToken;
       match = special.find(text, match.end))
    found.push_back(match.token);
  return found;
}

TEST(SpecialTokens, FindsNothingInNothing) {
  const SpecialTokens none;
  const auto match = none.find("text", 1);
  EXPECT_EQ(match.token, kNoToken);
  EXPECT_EQ(match.begin, 4u);
  EXPECT_EQ(match.end, 4u);
  EXPECT_EQ(SpecialTokens({{"a", 1}}).find("", 0).token, kNoToken);
}

TEST(SpecialTokens, TellsWhereAMatchLies) {
  const SpecialTokens special({{"<|a|>", 1}, {"<|ab|>", 2}});
  const auto match = special.find("x<|a<|ab|>y", 1);
  EXPECT_EQ(match.token, 2);
  EXPECT_EQ(match.begin, 4u);
  EXPECT_EQ(match.end, 10u);
  EXPECT_EQ(special.find("<|a|>", 1).token, kNoToken) << "starts before";
}

TEST(SpecialTokens, PrefersTheLeftmostThenTheLongest) {
  const SpecialTokens special({{"ab", 1}, {"abcd", 2}, {"bcdefgh", 3}, {"e", 4}});
  EXPECT_EQ(tokens_in(special, "abcdefgh"), (std::vector<TokenId>{2, 4}));
  EXPECT_EQ(tokens_in(special, "abcefgh"), (std::vector<TokenId>{1, 4}))
      << "falls back to the shorter one";
  EXPECT_EQ(tokens_in(special, "abab"), (std::vector<TokenId>{1, 1}));
}

TEST(SpecialTokens, OfEqualTextsTheFirstWins) {
  EXPECT_EQ(tokens_in(SpecialTokens({{"x", 9}, {"x", 3}}), "x"), std::vector<TokenId>{9});
}

TEST(SpecialTokens, ComparesBytesAsUnsigned) {
  const SpecialTokens special({{"\xef\xbd\x9c", 1}, {"z", 2}, {"\x01", 3}, {"\xef", 4}});
  EXPECT_EQ(tokens_in(special, "\xef\xbd\x9cz\x01\xef"), (std::vector<TokenId>{1, 2, 3, 4}));
}

TEST(SpecialTokens, AgreesWithTryingThemAll) {
  Random random(2);
  const auto random_text = [&](uint64_t length) {
    std::string text;
    while (text.size() < length) text += static_cast<char>('a' + random.below(2));
    return text;
  };
  for (int round = 0; round < 300; ++round) {
    std::vector<std::string> texts(1 + random.below(12));
    for (std::string& text : texts) text = random_text(1 + random.below(6));
    std::vector<SpecialTokens::Entry> entries;
    for (size_t i = 0; i < texts.size(); ++i)
      entries.push_back({texts[i], static_cast<TokenId>(i)});
    const SpecialTokens special(entries);
    const std::string text = random_text(30);
    for (size_t from = 0; from <= text.size(); ++from) {
      size_t begin = from;
      size_t longest = 0;
      for (; begin < text.size(); ++begin) {
        for (const std::string& candidate : texts)
          if (text.compare(begin, candidate.size(), candidate) == 0)
            longest = std::max(longest, candidate.size());
        if (longest != 0) break;
      }
      const auto match = special.find(text, from);
      ASSERT_EQ(match.begin, begin);
      ASSERT_EQ(match.end - match.begin, longest);
    }
  }
}

}  // namespace
}  // namespace sluice::text
