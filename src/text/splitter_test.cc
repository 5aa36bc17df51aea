#include "text/splitter.h"

#include <gtest/gtest.h>

#include <cctype>
#include <vector>

#include "base/check.h"
#include "base/random.h"

namespace sluice::text {
namespace {

using Words = std::vector<std::string>;

Words split(std::string_view name, std::string_view text) {
  const SplitRule* rule = find_split_rule(name);
  CHECK(rule != nullptr);
  Words words;
  for (size_t at = 0; at < text.size();) {
    const size_t end = word_end(*rule, text, at);
    CHECK(at < end && end <= text.size());
    words.emplace_back(text.substr(at, end - at));
    at = end;
  }
  return words;
}

Words qwen2(std::string_view text) {
  return split("qwen2", text);
}

TEST(Qwen2Split, WordsTakeTheSpaceBeforeThem) {
  EXPECT_EQ(qwen2("Hello world"), (Words{"Hello", " world"}));
  EXPECT_EQ(qwen2("  Hello   world  "), (Words{" ", " Hello", "  ", " world", "  "}));
  EXPECT_EQ(qwen2("\tx(y"), (Words{"\tx", "(y"}));
  EXPECT_EQ(qwen2(""), Words{});
}

TEST(Qwen2Split, Contractions) {
  EXPECT_EQ(qwen2("I'm y'all'd've"), (Words{"I", "'m", " y", "'all", "'d", "'ve"}));
  EXPECT_EQ(qwen2("DON'T WE'RE HE'LL"), (Words{"DON", "'T", " WE", "'RE", " HE", "'LL"}));
  EXPECT_EQ(qwen2("'sS 'reX 'r 'l"), (Words{"'s", "S", " '", "reX", " '", "r", " '", "l"}));
  EXPECT_EQ(qwen2("''s"), (Words{"''", "s"})) << "the signs before it take the apostrophe";
  EXPECT_EQ(qwen2("it\u2019s"), (Words{"it", "\u2019s"}));
  EXPECT_EQ(qwen2("'"), Words{"'"});
}

TEST(Qwen2Split, LongSFoldsToS) {
  EXPECT_EQ(qwen2("'\u017fab"), (Words{"'\u017f", "ab"}));
}

TEST(Qwen2Split, NumbersStandAlone) {
  EXPECT_EQ(qwen2("a12 3"), (Words{"a", "1", "2", " ", "3"}));
  EXPECT_EQ(qwen2("\u0661\u00bd\u2163"), (Words{"\u0661", "\u00bd", "\u2163"}));
}

TEST(Qwen2Split, SignsTakeASpaceBeforeAndNewlinesAfter) {
  EXPECT_EQ(qwen2("x = {\n\n  y"), (Words{"x", " =", " {\n\n", " ", " y"}));
  EXPECT_EQ(qwen2("...\r\nab"), (Words{"...\r\n", "ab"}));
  EXPECT_EQ(qwen2("!!a"), (Words{"!!", "a"}));
  EXPECT_EQ(qwen2("a\U0001f680\u0301b"), (Words{"a", "\U0001f680\u0301", "b"}))
      << "marks are no letters in this rule";
}

TEST(Qwen2Split, WhiteSpace) {
  EXPECT_EQ(qwen2("a\n\n\nb"), (Words{"a", "\n\n\n", "b"}));
  EXPECT_EQ(qwen2("a \n \n  b"), (Words{"a", " \n \n", " ", " b"}));
  EXPECT_EQ(qwen2("a  \t1"), (Words{"a", "  ", "\t", "1"}));
  EXPECT_EQ(qwen2("a   "), (Words{"a", "   "}));
  EXPECT_EQ(qwen2("\u3000\u00a0x"), (Words{"\u3000", "\u00a0x"}));
  EXPECT_EQ(qwen2("\r\n\r\n"), Words{"\r\n\r\n"});
  EXPECT_EQ(qwen2("\u2028\u0085"), Words{"\u2028\u0085"}) << "spaces, but no newlines";
}

TEST(Qwen2Split, BytesThatAreNotUtf8AreSigns) {
  EXPECT_EQ(qwen2("a\xff\xfe b"), (Words{"a", "\xff\xfe", " b"}));
}

bool is_ascii_space(char c) {
  return std::isspace(static_cast<unsigned char>(c)) != 0;
}
bool is_ascii_letter(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0;
}
bool is_ascii_digit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}
bool is_line_end(char c) {
  return c == '\r' || c == '\n';
}
bool is_sign(char c) {
  return !is_ascii_space(c) && !is_ascii_letter(c) && !is_ascii_digit(c);
}

/// The published expression taken literally, for ASCII: one alternative after the other, giving
/// back characters until the rest of an alternative fits, as a backtracking engine does.
size_t qwen2_end_by_definition(std::string_view text, size_t at) {
  const auto run = [&](size_t from, bool (*in)(char)) {
    while (from < text.size() && in(text[from])) ++from;
    return from;
  };
  for (const std::string_view suffix : {"s", "t", "re", "ve", "m", "ll", "d"}) {
    std::string lower(text.substr(at, 1 + suffix.size()));
    for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (lower[0] == '\'' && lower.compare(1, lower.npos, suffix) == 0) return at + lower.size();
  }
  if (!is_line_end(text[at]) && !is_ascii_letter(text[at]) && !is_ascii_digit(text[at]))
    if (const size_t end = run(at + 1, is_ascii_letter); end > at + 1) return end;
  if (const size_t end = run(at, is_ascii_letter); end > at) return end;
  if (is_ascii_digit(text[at])) return at + 1;
  const size_t signs = text[at] == ' ' ? at + 1 : at;
  if (const size_t end = run(signs, is_sign); end > signs) return run(end, is_line_end);
  const size_t spaces = run(at, is_ascii_space);
  for (size_t end = spaces + 1; end-- > at;)
    if (run(end, is_line_end) > end) return run(end, is_line_end);
  for (size_t end = spaces; end > at; --end)
    if (end == text.size() || is_ascii_space(text[end])) return end;
  return spaces;
}

TEST(Qwen2Split, AgreesWithTheDefinitionOnAscii) {
  const std::string_view alphabet = "  \n\r\t'''sStTrReEvVmMlLdDaZ09.,_-\x0b\x0c";
  Random random(5);
  for (int round = 0; round < 50000; ++round) {
    std::string text;
    for (uint64_t i = random.below(16); i > 0; --i) text += alphabet[random.below(alphabet.size())];
    Words wanted;
    for (size_t at = 0; at < text.size(); at += wanted.back().size())
      wanted.push_back(text.substr(at, qwen2_end_by_definition(text, at) - at));
    ASSERT_EQ(qwen2(text), wanted) << ::testing::PrintToString(text);
  }
}

TEST(Llama3Split, NumbersComeInThrees) {
  for (const char* name : {"llama-bpe", "lfm2", "glm4", "dbrx"}) {
    EXPECT_EQ(split(name, "a1234567 89"), (Words{"a", "123", "456", "7", " ", "89"})) << name;
    EXPECT_EQ(split(name, "It's e\u0301a !\n\n x"),
              (Words{"It", "'s", " e", "\u0301a", " !\n\n", " x"}))
        << "marks are no letters, but may precede them";
  }
}

TEST(BailingSplit, IsThatOfQwen2WithoutItsNormalization) {
  for (const char* name : {"bailingmoe2", "hunyuan"}) {
    EXPECT_EQ(split(name, "We'LL 12\n\n\nx"), (Words{"We", "'LL", " ", "1", "2", "\n\n\n", "x"}));
    EXPECT_EQ(find_split_rule(name)->normalization, Normalization::none);
  }
}

TEST(Qwen35Split, MarksBelongToWords) {
  EXPECT_EQ(split("qwen35", "e\u0301a \u0928\u092e\u0938\u094d\u0924\u0947 42"),
            (Words{"e\u0301a", " \u0928\u092e\u0938\u094d\u0924\u0947", " ", "4", "2"}));
  EXPECT_EQ(split("qwen35", "!!\u0301"), (Words{"!!", "\u0301"})) << "and not to signs";
  EXPECT_EQ(split("qwen35", "!\u0301"), Words{"!\u0301"}) << "a sign may precede a word";
}

Words o200k(std::string_view text) {
  const Words words = split("gpt-4o", text);
  EXPECT_EQ(split("minimax-m2", text), words);
  return words;
}

TEST(O200kSplit, AWordStartsWhereUpperCaseDoes) {
  EXPECT_EQ(o200k("camelCaseID HTTPServer"), (Words{"camel", "Case", "ID", " HTTPServer"}));
  EXPECT_EQ(o200k("ABC abC"), (Words{"ABC", " ab", "C"}));
  EXPECT_EQ(o200k("\u4e2d\u6587ABC"), (Words{"\u4e2d\u6587", "ABC"}))
      << "what has no case is lower case too";
  EXPECT_EQ(o200k("AB\u4e2dC"), (Words{"AB\u4e2d", "C"}));
  EXPECT_EQ(o200k("\u01c5ABa"), Words{"\u01c5ABa"}) << "title case is upper case";
}

TEST(O200kSplit, ContractionsEndWords) {
  EXPECT_EQ(o200k("I'm DON'T x'll 's"), (Words{"I'm", " DON'T", " x'll", " '", "s"}));
  EXPECT_EQ(o200k("we'rex"), (Words{"we're", "x"}));
  EXPECT_EQ(o200k("a'r"), (Words{"a", "'r"}));
}

TEST(O200kSplit, MarksBelongToWords) {
  EXPECT_EQ(o200k("\u0928\u092e\u0938\u094d\u0924\u0947!"),
            (Words{"\u0928\u092e\u0938\u094d\u0924\u0947", "!"}));
  EXPECT_EQ(o200k("\u0301ABC"), (Words{"\u0301", "ABC"}))
      << "the mark alone has lower case in it, the mark before upper case has not";
  EXPECT_EQ(o200k("!!\u0301a"), (Words{"!!\u0301", "a"}));
}

TEST(O200kSplit, NumbersSignsAndWhiteSpace) {
  EXPECT_EQ(o200k("1234 a//b"), (Words{"123", "4", " a", "//", "b"}));
  EXPECT_EQ(o200k("x ;\n/\r/ y"), (Words{"x", " ;\n/\r/", " y"}));
  EXPECT_EQ(o200k("a \n \n  b"), (Words{"a", " \n \n", " ", " b"}));
}

TEST(TekkenSplit, HasNoContractionsAndSingleDigits) {
  EXPECT_EQ(split("tekken", "I'm HTTPServerX 12 //\n/"),
            (Words{"I", "'m", " HTTPServer", "X", " ", "1", "2", " //\n/"}));
  EXPECT_EQ(split("tekken", "\u0928\u092e\u0947"), Words{"\u0928\u092e\u0947"});
}

TEST(KimiSplit, HanStandsAlone) {
  EXPECT_EQ(split("kimi-k2", "ab\u4e2d\u6587cD'll \u4e2d 1234"),
            (Words{"ab", "\u4e2d\u6587", "c", "D'll", " ", "\u4e2d", " ", "123", "4"}));
  EXPECT_EQ(split("kimi-k2", "\u304b\u6f22\u3005"), (Words{"\u304b", "\u6f22\u3005"}))
      << "kana is no Han, the mark of repetition is";
  EXPECT_EQ(split("kimi-k2", "1\u3007\u3007"), (Words{"1\u3007\u3007"}))
      << "a number that is Han continues a number";
  EXPECT_EQ(split("kimi-k2", "\u30071"), (Words{"\u3007", "1"}));
  EXPECT_EQ(split("kimi-k2", ";/\n/"), (Words{";/\n", "/"}));
}

TEST(DeepseekV3Split, NumbersAndIdeographsAreCutOutFirst) {
  EXPECT_EQ(split("deepseek-v3", "a  1234b"), (Words{"a", "  ", "123", "4", "b"}))
      << "white space before a cut is at the end of its piece";
  EXPECT_EQ(split("deepseek-v3", "x \u4e2d\u3042\u30a2y"),
            (Words{"x", " ", "\u4e2d\u3042\u30a2", "y"}));
}

TEST(DeepseekV3Split, WordsAndSigns) {
  EXPECT_EQ(split("deepseek-v3", "I'm (foo) =bar !!baz"),
            (Words{"I", "'m", " (", "foo", ")", " =", "bar", " !!", "baz"}));
  EXPECT_EQ(split("deepseek-v3", "(\u00e9t"), (Words{"(", "\u00e9t"}))
      << "only ASCII goes with a sign";
  EXPECT_EQ(split("deepseek-v3", "e\u0301a +\n\n b"), (Words{"e\u0301a", " +\n\n", " b"}));
}

TEST(DeepseekV3Split, WhatNothingMatchesStaysTogether) {
  EXPECT_EQ(split("deepseek-v3", "!\x01\x02\x03z"), (Words{"!", "\x01\x02", "\x03z"}));
  EXPECT_EQ(split("deepseek-v3", "\u200d\u200d \x01"), (Words{"\u200d\u200d", " ", "\x01"}));
}

TEST(DeepseekLlmSplit, PassesOneAfterTheOther) {
  const auto words = [](std::string_view text) { return split("deepseek-llm", text); };
  EXPECT_EQ(words("ab  cd\n\n\nx"), (Words{"ab", " ", " cd", "\n", "\n", "\n", "x"}));
  EXPECT_EQ(words("a !?b\tc"), (Words{"a", " !?", "b", "\tc"}));
  EXPECT_EQ(words("a 1234 "), (Words{"a", " ", "1234", " "}));
  EXPECT_EQ(words("\u4e2d\u6587 12"), (Words{"\u4e2d\u6587", " ", "12"}));
  EXPECT_EQ(words("1 \u4e2d  "), (Words{"1", " ", "\u4e2d", "  "}));
  EXPECT_EQ(words("\u00fc \u00fc  a"), (Words{"\u00fc \u00fc", " ", " a"}))
      << "what no pass takes stays in one piece, but for the white space at its end";
  EXPECT_EQ(words("!\u3000a\u3000!"), (Words{"!", "\u3000a", "\u3000!"}));
  EXPECT_EQ(words("\u3000\u3001\u3000"), Words{"\u3000\u3001\u3000"});
}

TEST(Gpt2Split, SpacesJoinWordsNumbersAndSigns) {
  for (const char* name : {"gpt-2", "olmo"}) {
    EXPECT_EQ(split(name, "It's 1234 !?\n\n x"), (Words{"It", "'s", " 1234", " !?", "\n\n", " x"}));
    EXPECT_EQ(split(name, "DON'T a\tb"), (Words{"DON", "'", "T", " a", "\t", "b"}));
    EXPECT_EQ(split(name, "a \n b"), (Words{"a", " \n", " b"}));
  }
  EXPECT_EQ(find_split_rule("olmo")->normalization, Normalization::nfc);
}

TEST(StarcoderSplit, DigitsAreCutOutFirst) {
  for (const char* name : {"refact", "starcoder", "smollm"})
    EXPECT_EQ(split(name, "ab 12 c  3"), (Words{"ab", " ", "1", "2", " c", "  ", "3"}));
}

TEST(SplitRules, CutAnyTextWithoutLosingAByte) {
  const std::string_view units[] = {
      "a", "B", "\u00e9", "\u4e2d", "\u3042", "\u0301", "1",      " ",      "\n",    "'s",
      "/", "!", "\x01",   "\xff",   "\u3000", "\u2003", "\u3007", "\u2e80", "\u01c5"};
  const std::string names = split_rule_names();
  Random random(6);
  for (size_t at = 0; at < names.size();) {
    const size_t end = std::min(names.find(", ", at), names.size());
    const std::string name = names.substr(at, end - at);
    at = end + 2;
    for (int round = 0; round < 500; ++round) {
      std::string text;
      for (uint64_t i = random.below(20); i > 0; --i) text += units[random.below(std::size(units))];
      std::string joined;
      for (const std::string& word : split(name, text)) joined += word;
      ASSERT_EQ(joined, text) << name;
    }
  }
}

TEST(SplitRules, AreFoundByName) {
  EXPECT_EQ(find_split_rule("no such rule"), nullptr);
  EXPECT_EQ(find_split_rule(""), nullptr);
  ASSERT_NE(find_split_rule("qwen2"), nullptr);
  EXPECT_EQ(find_split_rule("qwen2")->normalization, Normalization::nfc);
  EXPECT_NE(split_rule_names().find("qwen2"), std::string::npos);
}

}  // namespace
}  // namespace sluice::text
