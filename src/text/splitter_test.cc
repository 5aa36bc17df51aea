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

TEST(SplitRules, AreFoundByName) {
  EXPECT_EQ(find_split_rule("no such rule"), nullptr);
  EXPECT_EQ(find_split_rule(""), nullptr);
  ASSERT_NE(find_split_rule("qwen2"), nullptr);
  EXPECT_EQ(find_split_rule("qwen2")->normalization, Normalization::nfc);
  EXPECT_NE(split_rule_names().find("qwen2"), std::string::npos);
}

}  // namespace
}  // namespace sluice::text
