// The Tokenizer of every vocabulary: what byte-level BPE and SentencePiece have in common, around
// the encoder of one or the other. Made by Tokenizer::make; callers see text/tokenizer.h only.
// Immutable after make(): any thread.
#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "text/byte_encoder.h"
#include "text/character_encoder.h"
#include "text/special_tokens.h"
#include "text/tokenizer.h"

namespace sluice::text {

class VocabularyTokenizer final : public Tokenizer {
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
  using Encoder = std::variant<ByteEncoder, CharacterEncoder>;

  VocabularyTokenizer(Vocabulary vocabulary, Encoder encoder);

  void decode_pieces();
  void append_piece(std::string_view token, TokenType type);
  void collect_special_tokens();

  bool has(TokenId token) const { return 0 <= token && static_cast<size_t>(token) < token_count(); }
  TokenType type(TokenId token) const { return vocabulary_.types[static_cast<size_t>(token)]; }
  const MergeTable& merges() const;

  /// The text between two special tokens.
  void append_text(std::string_view text, WordMerger& merger, std::vector<TokenId>& out) const;
  void add_bos_and_eos(const TokenizeOptions& options, std::vector<TokenId>& tokens) const;

  Vocabulary vocabulary_;
  Encoder encoder_;
  SpecialTokens always_;               ///< user-defined tokens
  SpecialTokens with_control_;         ///< those and the control tokens
  std::string pieces_;                 ///< the bytes of all tokens, one after the other
  std::vector<size_t> piece_begins_;   ///< [token_count + 1] into pieces_
  std::vector<bool> ends_generation_;  ///< [token_count]
};

}  // namespace sluice::text
