#include "text/character_encoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/random.h"
#include "text/utf8.h"

namespace sluice::text {
namespace {

using ::testing::HasSubstr;
using Ids = std::vector<TokenId>;
using Words = std::vector<std::string>;

constexpr TokenizeOptions kAddSpecial{.add_special = true};

/// <unk>, <s>, </s>, the bytes where wanted, then texts, the first with the highest score.
Vocabulary scored_vocabulary(const Words& texts, bool bytes = true) {
  Vocabulary vocabulary;
  vocabulary.model = "llama";
  const auto add = [&](std::string text, TokenType type, double score) {
    vocabulary.tokens.push_back(std::move(text));
    vocabulary.types.push_back(type);
    vocabulary.scores.push_back(score);
  };
  add("<unk>", TokenType::unknown, 0);
  add("<s>", TokenType::control, 0);
  add("</s>", TokenType::control, 0);
  if (bytes)
    for (int byte = 0; byte < 256; ++byte) add(fmt::format("<0x{:02X}>", byte), TokenType::byte, 0);
  for (const std::string& text : texts)
    add(text, TokenType::normal, -static_cast<double>(vocabulary.tokens.size()));
  return vocabulary;
}

std::unique_ptr<Tokenizer> make(Vocabulary vocabulary) {
  auto tokenizer = Tokenizer::make(std::move(vocabulary));
  CHECK(tokenizer.ok());
  return *std::move(tokenizer);
}

/// The texts of the tokens, as the vocabulary writes them.
Words tokens(const Tokenizer& tokenizer, std::string_view text, TokenizeOptions options = {}) {
  Words texts;
  for (const TokenId token : tokenizer.tokenize(text, options))
    texts.push_back(tokenizer.vocabulary().tokens[static_cast<size_t>(token)]);
  return texts;
}

TEST(ScoredVocabulary, MergesTheHighestScoreFirst) {
  const auto tokenizer = make(scored_vocabulary({"bc", "ab", "abc", "\u2581", "a", "b", "c"}));
  EXPECT_EQ(tokens(*tokenizer, "abc"), (Words{"\u2581", "abc"}));
  EXPECT_EQ(tokens(*tokenizer, "abab"), (Words{"\u2581", "ab", "ab"}));
  const auto left = make(scored_vocabulary({"aa", "\u2581", "a"}));
  EXPECT_EQ(tokens(*left, "aaa"), (Words{"\u2581", "aa", "a"})) << "the leftmost of equals";
}

TEST(ScoredVocabulary, PutsASpaceBeforeWhatFollowsNothingOrASpecialToken) {
  Vocabulary vocabulary = scored_vocabulary({"\u2581a", "\u2581", "a", "b"});
  const auto prefixed = make(vocabulary);
  EXPECT_EQ(tokens(*prefixed, "a"), Words{"\u2581a"});
  EXPECT_EQ(tokens(*prefixed, "a</s>a a"), (Words{"\u2581a", "</s>", "\u2581a", "\u2581a"}));
  EXPECT_EQ(tokens(*prefixed, " a"), (Words{"\u2581", "\u2581a"}));
  EXPECT_EQ(tokens(*prefixed, ""), Words{});
  EXPECT_EQ(prefixed->detokenize(prefixed->tokenize("a b", {})), " a b");
  vocabulary.add_space_prefix = false;
  EXPECT_EQ(tokens(*make(vocabulary), "a</s>a a"), (Words{"a", "</s>", "a", "\u2581a"}));
}

TEST(ScoredVocabulary, WritesUnknownCharactersAsBytes) {
  const auto tokenizer = make(scored_vocabulary({"a\u00e9", "\u2581", "a"}));
  EXPECT_EQ(tokens(*tokenizer, "a\u4e2d"), (Words{"\u2581", "a", "<0xE4>", "<0xB8>", "<0xAD>"}));
  EXPECT_EQ(tokens(*tokenizer, "a\u00e9"), (Words{"\u2581", "a\u00e9"}))
      << "a character may be known in company only";
  EXPECT_EQ(tokens(*tokenizer, "\u00e9\u00e9"),
            (Words{"\u2581", "<0xC3>", "<0xA9>", "<0xC3>", "<0xA9>"}));
  EXPECT_EQ(tokenizer->detokenize(tokenizer->tokenize("\u4e2d\u00e9\n", {})), " \u4e2d\u00e9\n");
  const auto poor = make(scored_vocabulary({"\u2581", "a"}, /*bytes=*/false));
  EXPECT_EQ(tokens(*poor, "\u4e2d"), (Words{"\u2581", "<unk>", "<unk>", "<unk>"}));
}

TEST(ScoredVocabulary, TakesBrokenCharactersForAsLongAsTheyClaimToBe) {
  const auto tokenizer = make(scored_vocabulary({"\u2581", "a", "b"}));
  EXPECT_EQ(tokens(*tokenizer, "a\xe9zb"), (Words{"\u2581", "a", "<0xE9>", "<0x7A>", "<0x62>"}));
  EXPECT_EQ(tokens(*tokenizer, "a\x80z"), (Words{"\u2581", "a", "<0x80>", "<0x7A>"}));
  EXPECT_EQ(tokens(*tokenizer, "\xf0"), (Words{"\u2581", "<0xF0>"}));
}

TEST(ScoredVocabulary, NeverMakesControlTokensFromText) {
  const auto tokenizer = make(scored_vocabulary({"<s", "</", "</s", "\u2581", "<", "s", ">", "/"}));
  EXPECT_EQ(tokens(*tokenizer, "<s></s>", {.parse_special = false}),
            (Words{"\u2581", "<s", ">", "</s", ">"}));
  EXPECT_EQ(tokens(*tokenizer, "<0x41>", {.parse_special = false}).size(), 7u);
}

TEST(ScoredVocabulary, UsesTheUsualTokensAndFlagsWhereTheFileIsSilent) {
  Vocabulary vocabulary = scored_vocabulary({"\u2581a", "\u2581", "a"});
  EXPECT_EQ(tokens(*make(vocabulary), "a", kAddSpecial), (Words{"<s>", "\u2581a"}));
  EXPECT_TRUE(make(vocabulary)->is_end_of_generation(2));
  vocabulary.add_bos = false;
  vocabulary.add_eos = true;
  EXPECT_EQ(tokens(*make(vocabulary), "a", kAddSpecial), (Words{"\u2581a", "</s>"}));
}

TEST(ScoredVocabulary, IsTheSameWithWordsAndWithout) {
  const Words texts{"\u2581a", "ab", "\u2581\u2581", "\u2581ab", "ba", "\u2581", "a", "b"};
  Words longer = texts;
  longer.push_back("zz\u2581z");  // reaches over a space, so that text is one word
  const auto cut = make(scored_vocabulary(texts));
  const auto whole = make(scored_vocabulary(longer));
  Random random(7);
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (uint64_t i = random.below(24); i > 0; --i) text += "ab  "[random.below(4)];
    ASSERT_EQ(cut->tokenize(text, {}), whole->tokenize(text, {})) << '"' << text << '"';
  }
  EXPECT_EQ(tokens(*make(scored_vocabulary({"b\u2581a", "b\u2581", "\u2581", "a", "b"})), "b a"),
            (Words{"\u2581", "b\u2581a"}));
}

TEST(ScoredVocabulary, NeedsAScoreForEachToken) {
  Vocabulary vocabulary = scored_vocabulary({"a"});
  vocabulary.scores.pop_back();
  EXPECT_THAT(Tokenizer::make(vocabulary).error().message, HasSubstr("259 scores"));
  vocabulary.scores.push_back(std::numeric_limits<double>::quiet_NaN());
  EXPECT_THAT(Tokenizer::make(vocabulary).error().message, HasSubstr("no number"));
}

TEST(ScoredVocabulary, AMegabyteOfAnyCharacterIsNoTrouble) {
  const auto tokenizer = make(scored_vocabulary(
      {"aa", "aaaa", "\u2581\u2581", "\u2581\u2581\u2581\u2581", "a\u00e9", "\u2581", "a"}));
  for (const std::string_view unit : {"a", " ", "\n", "\u00e9", "\u4e2d", "\xff"}) {
    std::string text;
    while (text.size() < 1000000) text += unit;
    const std::clock_t start = std::clock();
    EXPECT_GE(tokenizer->tokenize(text, {}).size(), text.size() / 4);
    EXPECT_LT(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, 10) << unit;
  }
}

/// Merges instead of scores; spaces still are ▁.
Vocabulary gemma4_vocabulary() {
  Vocabulary vocabulary =
      scored_vocabulary({"\u2581a", "ab", "\u2581ab", "\n", "\n\n", "\n\n\n", "\u2581", "a", "b"});
  vocabulary.model = "gemma4";
  vocabulary.scores.clear();
  vocabulary.merges = {"a b", "\u2581 ab", "\u2581 a", "\n \n"};
  vocabulary.bos = 1;
  return vocabulary;
}

TEST(Gemma4Vocabulary, MergesByRankAndKeepsNewlinesApart) {
  const auto tokenizer = make(gemma4_vocabulary());
  EXPECT_EQ(tokens(*tokenizer, "ab ab a"), (Words{"ab", "\u2581ab", "\u2581a"}));
  EXPECT_EQ(tokens(*tokenizer, "a\n\n\nb\n"), (Words{"a", "\n\n\n", "b", "\n"}));
  EXPECT_EQ(tokens(*tokenizer, "\n\n\n\n"), (Words{"\n\n", "\n\n"}));
  EXPECT_EQ(tokens(*tokenizer, "\u4e2d"), (Words{"<0xE4>", "<0xB8>", "<0xAD>"}));
  EXPECT_EQ(tokenizer->detokenize(tokenizer->tokenize("a \xff", {})), "a \ufffd");
}

TEST(Gemma4Vocabulary, AlwaysStartsWithABos) {
  Vocabulary vocabulary = gemma4_vocabulary();
  vocabulary.add_bos = false;
  EXPECT_EQ(tokens(*make(vocabulary), "a", kAddSpecial), (Words{"<s>", "a"}));
}

}  // namespace
}  // namespace sluice::text
