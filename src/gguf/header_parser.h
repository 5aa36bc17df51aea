// Everything before the weights of one file, from bytes to a checked header. This is where foreign
// bytes enter the engine, so it is a pure function without files or state, and the fuzz target
// drives exactly it. Time is linear in the bytes, memory a small multiple of them. Any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "gguf/gguf_file.h"
#include "gguf/value_lookup.h"

namespace sluice::gguf {

struct ShardHeader {
  uint32_t version = 0;
  uint64_t data_begin = 0;  ///< where the header and its padding end
  ValueMap values;
  std::vector<Tensor> tensors;  ///< in the order of the table, all inside the file; file index 0
};

/// Parses the head of a file that is `file_bytes` long. Nothing comes back when the header goes on
/// past the head: read more of the file and call again. Errors do not name the file.
/// REQUIRES: head.size() ≤ file_bytes.
Result<std::optional<ShardHeader>> parse_header(std::span<const std::byte> head,
                                                uint64_t file_bytes);

}  // namespace sluice::gguf
