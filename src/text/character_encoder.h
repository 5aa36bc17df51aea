// Text to tokens as SentencePiece does (`tokenizer.ggml.model` "llama" and "gemma4"): a space is
// written ▁, the symbols of a word are its characters, and a character that the vocabulary lacks
// becomes the tokens of its bytes (<0xE4>, …).
//
// "llama" has scores instead of merges: any two neighbours merge whose texts together are a token,
// the highest score first. That is a list of merges too, once each token is taken apart in all ways
// in which both parts are symbols; so one merger serves both. A character that stands in tokens but
// is none itself gets an id of its own beyond the vocabulary, which becomes bytes at the end.
//
// A word is a stretch of text that no token reaches across: where no token has a ▁ after something
// else, words start at a ▁, else all text is one. "gemma4" keeps newlines apart. Special tokens are
// no concern of this class. Immutable after make(): any thread.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/bpe.h"
#include "text/merge_list.h"
#include "text/tokenizer.h"

namespace sluice::text {

class CharacterEncoder {
 public:
  /// Also settles the flags and tokens that the vocabulary leaves unsaid.
  static Result<CharacterEncoder> make(Vocabulary& vocabulary);

  const MergeTable& merges() const { return merges_; }
  /// The text between two special tokens; where the vocabulary says so, it gets a space before it.
  /// REQUIRES: `merger` works with merges().
  void append_tokens(std::string_view plain, WordMerger& merger, std::vector<TokenId>& out) const;
  /// The bytes of a token that is normal or a byte.
  static void append_piece(std::string_view token, TokenType type, std::string& bytes);

 private:
  /// The byte that a token of the form <0xE4> stands for, or −1.
  static int byte_of_token(std::string_view token);

  CharacterEncoder() : merges_(0) { bytes_.fill(kNoToken); }

  Status index(const Vocabulary& vocabulary);
  TokenIndex index_symbols(const Vocabulary& vocabulary);
  Status add_scored_merges(const Vocabulary& vocabulary, const TokenIndex& symbols);
  void index_newlines(const TokenIndex& symbols);

  /// kNoToken for a character that is in no token.
  TokenId symbol_of(char32_t code) const {
    return code < symbols_.size() ? symbols_[code] : kNoToken;
  }
  size_t append_newlines(std::string_view text, size_t at, WordMerger& merger,
                         std::vector<TokenId>& out) const;
  template <typename Add>
  void add_bytes(std::string_view bytes, Add&& add) const;
  void add_character(char32_t code, std::string_view bytes, WordMerger& merger) const;
  void end_word(WordMerger& merger, std::vector<TokenId>& out) const;

  std::vector<TokenId> symbols_;           ///< [code], up to the highest in a token
  std::vector<char32_t> lone_characters_;  ///< [id − token_count_]: those that are no tokens
  std::array<TokenId, 256> bytes_;         ///< kNoToken where the vocabulary has none
  std::vector<TokenId> newlines_;          ///< [count]: of so many newlines; empty for "llama"
  TokenId unknown_ = kNoToken;
  TokenId token_count_ = 0;
  bool scored_ = false;  ///< "llama"; else "gemma4"
  bool space_prefix_ = false;
  bool words_start_at_spaces_ = false;
  MergeTable merges_;
};

}  // namespace sluice::text
