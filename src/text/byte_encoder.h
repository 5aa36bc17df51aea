// Text to tokens by byte-level BPE (`tokenizer.ggml.model` "gpt2"): the text is repaired to UTF-8,
// normalised and cut into words by the split rule; the symbols of a word are its bytes. Special
// tokens are no concern of this class. Immutable after make(): any thread.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "text/bpe.h"
#include "text/splitter.h"
#include "text/tokenizer.h"

namespace sluice::text {

/// Lets a std::string be found by a std::string_view.
struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};

class ByteEncoder {
 public:
  /// Also settles the flags that the vocabulary leaves unsaid. Its tokens must outlive this object.
  static Result<ByteEncoder> make(Vocabulary& vocabulary);

  const MergeTable& merges() const { return merges_; }
  /// REQUIRES: `merger` works with merges().
  void append_tokens(std::string_view text, WordMerger& merger, std::vector<TokenId>& out) const;
  /// The bytes of a normal token.
  static void append_piece(std::string_view token, std::string& bytes);

 private:
  ByteEncoder(const SplitRule& rule, size_t merge_count) : rule_(&rule), merges_(merge_count) {}

  Status index(const Vocabulary& vocabulary);
  void append_word(std::string_view word, WordMerger& merger, std::vector<TokenId>& out) const;

  const SplitRule* rule_;
  std::array<TokenId, 256> byte_tokens_;  ///< kNoToken where the vocabulary has none
  MergeTable merges_;
  /// By their bytes; empty where the rule does not ask for them.
  std::unordered_map<std::string, TokenId, TextHash, std::equal_to<>> whole_tokens_;
};

}  // namespace sluice::text
