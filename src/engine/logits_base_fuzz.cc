// The libFuzzer target of the reader of stored logits; docs/fuzzing.md tells how to run it.
// Whatever the bytes: what is accepted lies within them, ids are within the vocabulary, and no
// probability is above one. No fuzzer guesses counts that account for every byte: so each input is
// also read as the content of a small file, behind a header that fits.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/check.h"
#include "engine/logits_base.h"
#include "testing/byte_surgery.h"

namespace {

using namespace sluice;

void read_one(std::span<const std::byte> bytes) {
  auto reader = LogitsBaseReader::parse(bytes, "fuzz");
  if (!reader) return;
  const ChunkShape& shape = reader->shape();
  CHECK(shape.scored_count() > 0 && shape.vocabulary_size <= bytes.size());
  for (uint32_t chunk = 0; chunk < shape.chunk_count; ++chunk) {
    const auto tokens = reader->tokens(chunk);
    CHECK(tokens.ok() && tokens->size() == shape.context_tokens && tokens->size() <= bytes.size());
    for (uint32_t index = 0; index < shape.scored_count(); ++index) {
      const auto row = reader->row(chunk, index);
      if (!row) continue;
      CHECK(row->codes.size() == shape.vocabulary_size);
      for (size_t token = 0; token < row->codes.size(); ++token)
        CHECK(row->log_probability(token) <= 0.01);
    }
  }
}

/// Three bytes choose the counts, one each the tokens (now and then one too large), the rest is
/// rows.
std::string fitted(std::string_view data) {
  const auto number = [&](size_t i) { return static_cast<uint8_t>(data[i % data.size()]); };
  const ChunkShape shape{.context_tokens = ChunkShape::kContextMin + number(0) % 8u,
                         .vocabulary_size = 1 + number(1) % 8u,
                         .chunk_count = 1 + number(2) % 3u};
  const size_t token_count = size_t{shape.chunk_count} * shape.context_tokens;
  std::string bytes(kLogitsBaseMagic);
  for (const uint32_t count : {shape.context_tokens, shape.vocabulary_size, shape.chunk_count})
    bytes += bytes_of(count);
  for (size_t i = 0; i < token_count; ++i)
    bytes += bytes_of(number(3 + i) == 255 ? shape.vocabulary_size
                                           : number(3 + i) % shape.vocabulary_size);
  bytes += data.substr(std::min(data.size(), 3 + token_count));
  bytes.resize(sizeof(LogitsBaseHeader) + token_count * sizeof(text::TokenId) +
               shape.chunk_count * shape.scored_count() *
                   logits_base_row_bytes(shape.vocabulary_size));
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  read_one(as_byte_span(input));
  if (!input.empty()) read_one(as_byte_span(fitted(input)));
  return 0;
}
