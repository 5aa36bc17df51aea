// The Tokenizer of byte-level BPE vocabularies (`tokenizer.ggml.model` "gpt2"). Made by
// Tokenizer::make; callers see text/tokenizer.h only. Immutable after make(): any thread.
//
// A text passes through: special tokens cut out of the raw text; what is between them repaired to
// UTF-8 and normalised; the splitter's words; the merges of each word.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "text/bpe.h"
#include "text/special_tokens.h"
#include "text/splitter.h"
#include "text/tokenizer.h"

namespace sluice::text {

class BpeTokenizer final : public Tokenizer {
 public:
  /// REQUIRES: the types are one per token, and bos, eos, eot are tokens or kNoToken.
  static Result<std::unique_ptr<Tokenizer>> make(Vocabulary vocabulary);

  std::vector<TokenId> tokenize(std::string_view text,
                                const TokenizeOptions& options) const override;
  std::string_view piece(TokenId token) const override;
  size_t token_count() const override { return vocabulary_.tokens.size(); }
  bool is_control(TokenId token) const override;
  bool is_end_of_generation(TokenId token) const override;
  const Vocabulary& vocabulary() const override { return vocabulary_; }

 private:
  BpeTokenizer(Vocabulary vocabulary, const SplitRule& rule);

  Status index_tokens_and_merges();
  void decode_pieces();
  void collect_special_tokens();

  bool has(TokenId token) const { return 0 <= token && static_cast<size_t>(token) < token_count(); }
  TokenType type(TokenId token) const { return vocabulary_.types[static_cast<size_t>(token)]; }

  /// Plain text: no special tokens in it.
  void append_words(std::string_view text, WordMerger& merger, std::vector<TokenId>& out) const;

  Vocabulary vocabulary_;
  const SplitRule& rule_;
  ByteTokens byte_tokens_;
  MergeTable merges_;
  SpecialTokens always_;               ///< user-defined tokens
  SpecialTokens with_control_;         ///< those and the control tokens
  std::string pieces_;                 ///< the bytes of all tokens, one after the other
  std::vector<size_t> piece_begins_;   ///< [token_count + 1] into pieces_
  std::vector<bool> ends_generation_;  ///< [token_count]
};

}  // namespace sluice::text
