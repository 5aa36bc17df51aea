// The libFuzzer target of the reader of stored logits; docs/fuzzing.md tells how to run it.
// Whatever the bytes: what is accepted lies within them, ids are within the vocabulary, and no
// probability is above one.
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/check.h"
#include "engine/logits_base.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sluice;
  auto reader = LogitsBaseReader::parse(std::as_bytes(std::span(data, size)), "fuzz");
  if (!reader) return 0;
  const ChunkShape& shape = reader->shape();
  CHECK(shape.scored_count() > 0 && shape.vocabulary_size <= size);
  for (uint32_t chunk = 0; chunk < shape.chunk_count; ++chunk) {
    const auto tokens = reader->tokens(chunk);
    CHECK(tokens.ok() && tokens->size() == shape.context_tokens && tokens->size() <= size);
    for (uint32_t index = 0; index < shape.scored_count(); ++index) {
      const auto row = reader->row(chunk, index);
      if (!row) continue;
      CHECK(row->codes.size() == shape.vocabulary_size);
      for (size_t token = 0; token < row->codes.size(); ++token)
        CHECK(row->log_probability(token) <= 0.01);
    }
  }
  return 0;
}
