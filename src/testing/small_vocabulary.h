// A vocabulary of byte-level BPE small enough to work out by hand: one token for each byte, then
// what the given merges make, then special tokens. For tests.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/byte_symbols.h"
#include "text/tokenizer.h"

namespace sluice::testing {

/// The id of the byte b is b. Parts of merges are given as bytes (" t", not "Ġt"), by rank.
inline text::Vocabulary small_vocabulary(
    const std::vector<std::pair<std::string, std::string>>& merges,
    const std::vector<std::pair<std::string, text::TokenType>>& special = {}) {
  text::Vocabulary vocabulary;
  vocabulary.model = "gpt2";
  vocabulary.pre = "qwen2";
  const auto add = [&](std::string text, text::TokenType type) {
    vocabulary.tokens.push_back(std::move(text));
    vocabulary.types.push_back(type);
  };
  for (int byte = 0; byte < 256; ++byte) {
    const char raw = static_cast<char>(byte);
    add(text::symbols_of_bytes({&raw, 1}), text::TokenType::normal);
  }
  for (const auto& [left, right] : merges) {
    add(text::symbols_of_bytes(left + right), text::TokenType::normal);
    vocabulary.merges.push_back(text::symbols_of_bytes(left) + " " + text::symbols_of_bytes(right));
  }
  for (const auto& [text, type] : special) add(text, type);
  return vocabulary;
}

}  // namespace sluice::testing
