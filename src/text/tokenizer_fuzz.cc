// Any bytes must tokenize, and what comes back must be stable: detokenized text is repaired and in
// NFC, so tokenizing it again gives the same tokens.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "testing/small_vocabulary.h"

using sluice::text::Tokenizer;
using sluice::text::TokenType;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t count) {
  static const auto tokenizer = Tokenizer::make(sluice::testing::small_vocabulary(
      {{"a", "a"}, {"aa", "aa"}, {" ", "a"}, {" ", " "}, {"\n", "\n"}, {"\xef", "\xbf"}},
      {{"<|c|>", TokenType::control}, {"<u>", TokenType::user_defined}}));
  CHECK(tokenizer.ok());
  const std::string_view text(reinterpret_cast<const char*>(bytes), count);
  for (const bool parse_special : {false, true}) {
    const auto tokens = (*tokenizer)->tokenize(text, {.parse_special = parse_special});
    const auto again =
        (*tokenizer)->tokenize((*tokenizer)->detokenize(tokens), {.parse_special = parse_special});
    CHECK(tokens == again);
  }
  return 0;
}
