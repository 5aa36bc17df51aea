// What llama-perplexity writes with --kl-divergence-base: the probabilities that some engine gave
// the next token all along a text, to be compared with those of another. Little-endian:
//
//   "_logits_"   int32 context   int32 vocabulary   int32 chunks
//   int32 tokens [chunk][context]
//   rows [chunk][scored position], each:
//     float scale   float lowest   uint16 codes [vocabulary], padded to an even number
//
// A chunk begins with an empty context; its tokens are scored from the second half on, so that each
// has something before it. Token i of the vocabulary has the log-probability scale · code + lowest.
// What is more than 16 below the top has code 0, as if it were 16 below.
//
// The reader trusts nobody: no count is used before the file's size bears it out, and it holds one
// row at a time, however long the file is. One thread at a time.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "os/file.h"
#include "text/tokenizer.h"

namespace sluice {

inline constexpr std::string_view kLogitsBaseMagic = "_logits_";
inline constexpr double kLogitsBaseDepth = 16;  ///< less than e^−16 of the top is not told apart
inline constexpr size_t kLogitsBaseCodeMax = 65535;

/// How a text is cut, and what of it is scored.
struct ChunkShape {
  static constexpr uint32_t kContextMin = 3;  ///< fewer tokens leave nothing to score
  static constexpr uint32_t kContextMax = 1u << 24;

  uint32_t context_tokens = 512;
  uint32_t vocabulary_size = 0;
  uint32_t chunk_count = 0;

  /// The first position of a chunk whose logits count: they are about the token behind it.
  uint32_t first_scored() const { return context_tokens / 2; }
  uint32_t scored_count() const { return context_tokens - 1 - first_scored(); }
};

/// As a file has it.
struct LogitsBaseHeader {
  char magic[8];
  int32_t context_tokens;
  int32_t vocabulary_size;
  int32_t chunk_count;
};
static_assert(sizeof(LogitsBaseHeader) == 20);

struct LogitsBaseRowHead {
  float scale;
  float lowest;
};
static_assert(sizeof(LogitsBaseRowHead) == 4 * sizeof(uint16_t));

/// Bytes of a row: scale, lowest and the codes.
constexpr uint64_t logits_base_row_bytes(uint64_t vocabulary_size) {
  return sizeof(LogitsBaseRowHead) + (vocabulary_size + 1) / 2 * 2 * sizeof(uint16_t);
}

/// The log-probabilities that the base gave to all tokens at one position.
struct BaseRow {
  double scale = 0;
  double lowest = 0;
  std::span<const uint16_t> codes;  ///< [vocabulary]

  double log_probability(size_t token) const { return scale * codes[token] + lowest; }
};

class LogitsBaseReader {
 public:
  static Result<LogitsBaseReader> open(const std::string& path);
  /// From memory, which must outlive the reader. `name` is for messages.
  static Result<LogitsBaseReader> parse(std::span<const std::byte> bytes, std::string name);

  const std::string& name() const { return name_; }
  const ChunkShape& shape() const { return shape_; }
  /// [context], all of them below the vocabulary's size.
  Result<std::vector<text::TokenId>> tokens(uint32_t chunk) const;
  /// The row about the token behind position first_scored() + `index`. Valid until the next call.
  Result<BaseRow> row(uint32_t chunk, uint32_t index);

 private:
  LogitsBaseReader() = default;
  static Result<LogitsBaseReader> check(LogitsBaseReader reader);
  Status check_counts(const LogitsBaseHeader& header);
  Status read(uint64_t offset, std::span<std::byte> buffer) const;
  uint64_t chunk_tokens_bytes() const;

  std::string name_;
  std::unique_ptr<os::File> file_;     ///< null: bytes in memory
  std::span<const std::byte> memory_;  ///< where there is no file
  uint64_t bytes_ = 0;
  ChunkShape shape_;
  std::vector<uint16_t> row_;  ///< head, codes and padding of one row
};

}  // namespace sluice
