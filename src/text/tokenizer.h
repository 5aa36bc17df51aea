// Text to token ids and back. Knows nothing of model files: whoever loads a model fills a
// Vocabulary (engine/loader does so from GGUF keys). Immutable after make(); any thread may use it
// at the same time as others.
//
// Special tokens are found first, in one trie pass. What is between them is encoded in one of two
// ways. Byte-level BPE (byte_encoder.h): bytes are mapped to printable stand-ins as GPT-2 does, and
// text is cut into words by the splitter that `pre` names. SentencePiece (character_encoder.h):
// characters, and bytes where the vocabulary lacks a character; a space is ▁. In both the pairs of
// a word are merged in order of rank (a heap over a linked list, so a word of n symbols costs n log
// n).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace sluice::text {

using TokenId = int32_t;
inline constexpr TokenId kNoToken = -1;

/// The numbers are those of `tokenizer.ggml.token_type`.
enum class TokenType : uint8_t { normal = 1, unknown, control, user_defined, unused, byte };

struct Vocabulary {
  /// `tokenizer.ggml.model`: "gpt2" is byte-level BPE, "llama" SentencePiece with scores, "gemma4"
  /// SentencePiece with merges.
  std::string model;
  std::string pre;  ///< `tokenizer.ggml.pre`: names the splitter of "gpt2"
  std::vector<std::string> tokens;
  std::vector<TokenType> types;     ///< one per token; empty: all normal
  std::vector<std::string> merges;  ///< "left right", by rank; "gpt2" and "gemma4"
  std::vector<double> scores;       ///< one per token, the highest merges first; "llama"
  TokenId bos = kNoToken;
  TokenId eos = kNoToken;
  TokenId eot = kNoToken;
  /// What a file leaves unsaid follows from the model and the splitter.
  std::optional<bool> add_bos;
  std::optional<bool> add_eos;
  std::optional<bool> add_space_prefix;
};

/// The bytes [begin, end) of a text.
struct ByteRange {
  size_t begin;
  size_t end;
};

struct TokenizeOptions {
  bool add_special = false;   ///< BOS/EOS where the model says so
  bool never_doubled = true;  ///< but not where the text has it already
  bool goes_on = false;       ///< the text is not complete: no EOS behind it
  bool parse_special = true;  ///< text of control tokens becomes those tokens
  /// What others wrote: no control token is seen that has a byte in one of these. Words and merges
  /// run across their borders, as in one text. REQUIRES: in order, apart, none empty.
  std::span<const ByteRange> foreign = {};
};

class Tokenizer {
 public:
  /// Refuses unknown models and splitters by name, listing what is supported, and vocabularies
  /// that contradict themselves (a merge whose parts are no tokens, types of another length).
  static Result<std::unique_ptr<Tokenizer>> make(Vocabulary vocabulary);
  virtual ~Tokenizer() = default;

  /// Any bytes; byte-level BPE reads what is not UTF-8 as U+FFFD, as the reference does.
  virtual std::vector<TokenId> tokenize(std::string_view text,
                                        const TokenizeOptions& options) const = 0;
  /// The bytes of one token, control tokens as their text. Empty for ids outside the vocabulary.
  virtual std::string_view piece(TokenId token) const = 0;
  virtual size_t token_count() const = 0;
  virtual bool is_control(TokenId token) const = 0;
  /// Ends generation: EOS, EOT and the well-known names (<|im_end|>, <|endoftext|>, …).
  virtual bool is_end_of_generation(TokenId token) const = 0;
  /// As it was given, but without merges and scores, which make() turns into a table of their own,
  /// and with the flags that were left unsaid.
  virtual const Vocabulary& vocabulary() const = 0;

  std::string detokenize(std::span<const TokenId> tokens) const;
};

/// Holds back the bytes of an incomplete UTF-8 character while text is streamed. One per stream.
class Utf8Stream {
 public:
  /// The bytes that are complete now, with what was held back before. Bytes that can never become
  /// UTF-8 are passed on as they are.
  std::string push(std::string_view bytes);
  /// What is still held back, at the end.
  std::string flush();

 private:
  std::string held_;
};

}  // namespace sluice::text
