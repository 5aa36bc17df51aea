#include "text/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <thread>

#include "base/random.h"
#include "testing/small_vocabulary.h"
#include "text/nfc.h"
#include "text/utf8.h"

namespace sluice::text {
namespace {

using ::testing::HasSubstr;
using testing::small_vocabulary;
using Ids = std::vector<TokenId>;

constexpr TokenizeOptions kPlainText{.add_special = false, .parse_special = false};

std::unique_ptr<Tokenizer> make(Vocabulary vocabulary) {
  auto tokenizer = Tokenizer::make(std::move(vocabulary));
  EXPECT_TRUE(tokenizer.ok()) << (tokenizer.ok() ? "" : tokenizer.error().message);
  return std::move(tokenizer).value();
}

std::string refusal(Vocabulary vocabulary) {
  const auto tokenizer = Tokenizer::make(std::move(vocabulary));
  return tokenizer.ok() ? "" : tokenizer.error().message;
}

enum Id : TokenId { kHe = 256, kLl, kHell, kHello, kSpaceHe, kSpaceHello, kFirstSpecial };

/// Ids as in the enum above; then the special tokens.
Vocabulary hello_vocabulary(const std::vector<std::pair<std::string, TokenType>>& special = {}) {
  return small_vocabulary(
      {{"h", "e"}, {"l", "l"}, {"he", "ll"}, {"hell", "o"}, {" ", "he"}, {" ", "hello"}}, special);
}

TEST(TokenizerMake, RefusesWhatIsNotSupportedByName) {
  Vocabulary vocabulary = hello_vocabulary();
  vocabulary.model = "t5";
  EXPECT_THAT(refusal(vocabulary), HasSubstr("'t5'"));
  EXPECT_THAT(refusal(vocabulary), HasSubstr("gpt2"));
  vocabulary.model = "gpt2";
  vocabulary.pre = "unheard-of";
  EXPECT_THAT(refusal(vocabulary), HasSubstr("'unheard-of'"));
  EXPECT_THAT(refusal(vocabulary), HasSubstr("qwen2"));
}

TEST(TokenizerMake, RefusesVocabulariesThatContradictThemselves) {
  Vocabulary types = hello_vocabulary();
  types.types.pop_back();
  EXPECT_THAT(refusal(types), HasSubstr("262 tokens, but 261 token types"));

  Vocabulary merges = hello_vocabulary();
  merges.merges[1] = "l nothing";
  EXPECT_THAT(refusal(merges), HasSubstr("merge 1"));
  EXPECT_THAT(refusal(merges), HasSubstr("'nothing' is no token"));
  for (const char* bad : {"", " ", "l", "l ", " l"}) {
    merges.merges[1] = bad;
    EXPECT_THAT(refusal(merges), HasSubstr("merge 1"));
  }

  Vocabulary bos = hello_vocabulary();
  bos.bos = 262;
  EXPECT_THAT(refusal(bos), HasSubstr("BOS token is 262"));
  bos.bos = -2;
  EXPECT_THAT(refusal(bos), HasSubstr("BOS token is -2"));
}

TEST(TokenizerMake, TakesAVocabularyWithoutTypesAsAllNormal) {
  Vocabulary vocabulary = hello_vocabulary();
  vocabulary.types.clear();
  EXPECT_EQ(make(vocabulary)->tokenize("hello", {}), Ids{kHello});
}

TEST(TokenizerMake, IgnoresMergesIntoNothing) {
  Vocabulary vocabulary = hello_vocabulary();
  vocabulary.merges.insert(vocabulary.merges.begin(), "a b");
  EXPECT_EQ(make(vocabulary)->tokenize("abhello", {}), (Ids{'a', 'b', kHello}));
}

TEST(TokenizerMake, TakesAnEmptyVocabulary) {
  Vocabulary vocabulary;
  vocabulary.model = "gpt2";
  vocabulary.pre = "qwen2";
  EXPECT_EQ(make(vocabulary)->tokenize("hello", {}), Ids{});
}

TEST(Tokenize, MergesWithinWordsOnly) {
  const auto tokenizer = make(hello_vocabulary());
  EXPECT_EQ(tokenizer->tokenize("", {}), Ids{});
  EXPECT_EQ(tokenizer->tokenize("hello hello", {}), (Ids{kHello, kSpaceHello}));
  EXPECT_EQ(tokenizer->tokenize("he llo", {}), (Ids{kHe, ' ', kLl, 'o'}));
  EXPECT_EQ(tokenizer->tokenize(std::string_view("\0\n", 2), {}), (Ids{0, '\n'}));
}

TEST(Tokenize, ReadsBadBytesAsReplacementCharacters) {
  const auto tokenizer = make(hello_vocabulary());
  EXPECT_EQ(tokenizer->tokenize("he\xff", {}), (Ids{kHe, 0xef, 0xbf, 0xbd}));
}

TEST(Tokenize, NormalisesAsTheModelDoes) {
  Vocabulary vocabulary = hello_vocabulary();
  EXPECT_EQ(make(vocabulary)->tokenize("e\xcc\x81", {}), (Ids{0xc3, 0xa9}));
  vocabulary.pre = "hunyuan";
  EXPECT_EQ(make(vocabulary)->tokenize("e\xcc\x81", {}), (Ids{'e', 0xcc, 0x81}));
}

TEST(Tokenize, FindsSpecialTokensAsTold) {
  const auto tokenizer = make(hello_vocabulary({{"<|c|>", TokenType::control},
                                                {"<u>", TokenType::user_defined},
                                                {"<unk>", TokenType::unknown},
                                                {"<gap>", TokenType::unused},
                                                {"", TokenType::control}}));
  const TokenId control = kFirstSpecial, user = kFirstSpecial + 1, unknown = kFirstSpecial + 2;
  EXPECT_EQ(tokenizer->tokenize("he<|c|>he<u>", {}), (Ids{kHe, control, kHe, user}));
  EXPECT_EQ(tokenizer->tokenize("<|c|><u>", kPlainText), (Ids{'<', '|', 'c', '|', '>', user}));
  EXPECT_EQ(tokenizer->tokenize("<unk>", {}), Ids{unknown});
  EXPECT_EQ(tokenizer->tokenize("<unk>", kPlainText), (Ids{'<', 'u', 'n', 'k', '>'}));
  EXPECT_EQ(tokenizer->tokenize("<gap>", {}), (Ids{'<', 'g', 'a', 'p', '>'}));
  EXPECT_EQ(tokenizer->tokenize("<|c|", {}), (Ids{'<', '|', 'c', '|'}));
}

TEST(Tokenize, NeverSeesControlTokensInWhatOthersWrote) {
  const auto tokenizer =
      make(hello_vocabulary({{"<|c|>", TokenType::control}, {"<|c|>x", TokenType::control}}));
  const TokenId control = kFirstSpecial, longer = kFirstSpecial + 1;
  const auto ids = [&](std::string_view text, std::vector<ByteRange> foreign) {
    return tokenizer->tokenize(text, {.foreign = foreign});
  };
  const Ids spelled{'<', '|', 'c', '|', '>'};
  EXPECT_EQ(ids("<|c|>", {{0, 5}}), spelled);
  EXPECT_EQ(ids("<|c|>", {{0, 1}}), spelled) << "half of it is another's";
  EXPECT_EQ(ids("<|c|>", {{4, 5}}), spelled);
  EXPECT_EQ(ids("<|c|>", {{2, 3}}), spelled);
  EXPECT_EQ(ids("<|c|>x", {}), Ids{longer});
  EXPECT_EQ(ids("<|c|>x", {{5, 6}}), (Ids{control, 'x'})) << "the longer one reaches across";
  EXPECT_EQ(ids("x<|c|>x", {{0, 1}, {6, 7}}), (Ids{'x', control, 'x'}));
  EXPECT_EQ(ids("he", {{1, 2}}), Ids{kHe}) << "merges reach across";
}

TEST(Tokenize, SeesUserDefinedTokensInAnyText) {
  const auto tokenizer = make(hello_vocabulary({{"<u>", TokenType::user_defined}}));
  const std::vector<ByteRange> foreign{{0, 2}};
  EXPECT_EQ(tokenizer->tokenize("<u>", {.foreign = foreign}), Ids{kFirstSpecial});
}

TEST(Tokenize, AddsBosAndEosWhereTheModelSaysSo) {
  Vocabulary vocabulary =
      hello_vocabulary({{"<s>", TokenType::control}, {"</s>", TokenType::control}});
  const TokenId bos = kFirstSpecial, eos = kFirstSpecial + 1;
  vocabulary.bos = bos;
  vocabulary.eos = eos;
  const TokenizeOptions add{.add_special = true};
  EXPECT_EQ(make(vocabulary)->tokenize("he", add), Ids{kHe});
  vocabulary.add_bos = true;
  EXPECT_EQ(make(vocabulary)->tokenize("he", add), (Ids{bos, kHe}));
  EXPECT_EQ(make(vocabulary)->tokenize("he", {}), Ids{kHe});
  vocabulary.add_eos = true;
  const auto both = make(vocabulary);
  EXPECT_EQ(both->tokenize("he", add), (Ids{bos, kHe, eos}));
  EXPECT_EQ(both->tokenize("", add), (Ids{bos, eos}));
  EXPECT_EQ(both->tokenize("he", {.add_special = true, .goes_on = true}), (Ids{bos, kHe}));
  EXPECT_EQ(both->tokenize("<s>he</s>", add), (Ids{bos, kHe, eos})) << "never doubled";
  vocabulary.bos = kNoToken;
  EXPECT_EQ(make(vocabulary)->tokenize("he", add), (Ids{kHe, eos})) << "there is no BOS to add";
}

TEST(Piece, IsTheBytesOfAToken) {
  const auto tokenizer = make(hello_vocabulary({{"<|c|>", TokenType::control},
                                                {"\u4e2d", TokenType::user_defined},
                                                {"<gap>", TokenType::unused},
                                                {"\u4e2d\u0120", TokenType::normal}}));
  EXPECT_EQ(tokenizer->piece(kSpaceHello), " hello");
  EXPECT_EQ(tokenizer->piece(0xff), "\xff");
  EXPECT_EQ(tokenizer->piece(kFirstSpecial), "<|c|>");
  EXPECT_EQ(tokenizer->piece(kFirstSpecial + 1), "\u4e2d");
  EXPECT_EQ(tokenizer->piece(kFirstSpecial + 2), "");
  EXPECT_EQ(tokenizer->piece(kFirstSpecial + 3), "\u4e2d ") << "what is no symbol stays";
  for (const TokenId outside : {-1, kFirstSpecial + 4, 1 << 30})
    EXPECT_EQ(tokenizer->piece(outside), "");
  EXPECT_EQ(tokenizer->detokenize(Ids{kHello, -1, kSpaceHe, kFirstSpecial}), "hello he<|c|>");
}

TEST(Tokenizer, AnswersQuestionsAboutTokens) {
  Vocabulary vocabulary =
      hello_vocabulary({{"<|im_end|>", TokenType::control}, {"<u>", TokenType::user_defined}});
  vocabulary.eos = kHello;
  const auto tokenizer = make(vocabulary);
  EXPECT_EQ(tokenizer->token_count(), size_t{kFirstSpecial} + 2);
  EXPECT_TRUE(tokenizer->is_control(kFirstSpecial));
  EXPECT_FALSE(tokenizer->is_control(kFirstSpecial + 1));
  EXPECT_FALSE(tokenizer->is_control(-1));
  EXPECT_TRUE(tokenizer->is_end_of_generation(kFirstSpecial));
  EXPECT_TRUE(tokenizer->is_end_of_generation(kHello));
  EXPECT_FALSE(tokenizer->is_end_of_generation(kHe));
  EXPECT_FALSE(tokenizer->is_end_of_generation(1 << 30));
  EXPECT_EQ(tokenizer->vocabulary().tokens, vocabulary.tokens);
}

TEST(Tokenizer, RoundTripsAnyTextInNfc) {
  const auto tokenizer = make(hello_vocabulary({{"<|c|>", TokenType::control}}));
  Random random(9);
  for (int round = 0; round < 3000; ++round) {
    std::string bytes;
    for (uint64_t i = random.below(40); i > 0; --i) {
      switch (random.below(4)) {
        case 0:
          bytes += static_cast<char>(random.below(256));
          break;
        case 1:
          append_utf8(static_cast<char32_t>(random.below(0x110000)), bytes);
          break;
        case 2:
          bytes += "hello <|c|>'s\n"[random.below(14)];
          break;
        default:
          bytes += "<|c|>";
          break;
      }
    }
    std::string repaired, normal;
    const std::string text(to_nfc(repair_utf8(bytes, repaired), normal));
    for (const bool parse_special : {false, true}) {
      const TokenizeOptions options{.parse_special = parse_special};
      ASSERT_EQ(tokenizer->detokenize(tokenizer->tokenize(text, options)), text);
      ASSERT_EQ(tokenizer->tokenize(bytes, options), tokenizer->tokenize(text, options));
    }
  }
}

TEST(Tokenizer, AMegabyteOfAnyCharacterIsNoTrouble) {
  std::vector<std::pair<std::string, std::string>> merges;
  const std::vector<std::string> units{"a",      " ",       "\n",         "\r\n",  "\t",
                                       "7",      "'",       "<",          "\xff",  "\u4e2d",
                                       "\u0301", "e\u0301", "\U0001f680", "\u1100"};
  for (const char* unit : {"a", " ", "\n", "\t", "'", "<"}) {
    for (size_t length = 1; length <= 32; length *= 2) {
      std::string half;
      while (half.size() < length) half += unit;
      merges.emplace_back(half, half);
    }
  }
  merges.emplace_back("\xef", "\xbf");
  merges.emplace_back("\xef\xbf", "\xbd");
  merges.emplace_back("\xef\xbf\xbd", "\xef\xbf\xbd");
  const auto tokenizer = make(small_vocabulary(
      merges, {{"<<<<<<<<!", TokenType::user_defined}, {"<|c|>", TokenType::control}}));
  for (const std::string& unit : units) {
    std::string text;
    while (text.size() < 1000000) text += unit;
    const std::clock_t start = std::clock();
    const Ids ids = tokenizer->tokenize(text, {});
    const double cpu_s = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    // Tenths of a second when optimised; the limit leaves room for sanitizers and emulators. What
    // is quadratic takes minutes.
    EXPECT_LT(cpu_s, 10) << unit;
    EXPECT_GE(ids.size(), text.size() / 64) << unit;
    if (unit == "a") {
      EXPECT_EQ(ids, Ids(text.size() / 64, 256 + 5));
    }
  }
}

TEST(Tokenizer, ServesManyThreadsAtOnce) {
  const auto tokenizer = make(hello_vocabulary({{"<|c|>", TokenType::control}}));
  std::string text;
  for (int i = 0; i < 300; ++i) text += "hello hell<|c|> e\xcc\x81\xff";
  const Ids wanted = tokenizer->tokenize(text, {});
  std::vector<Ids> results(4);
  {
    std::vector<std::jthread> threads;
    for (Ids& result : results)
      threads.emplace_back([&] { result = tokenizer->tokenize(text, {}); });
  }
  for (const Ids& result : results) EXPECT_EQ(result, wanted);
}

}  // namespace
}  // namespace sluice::text
