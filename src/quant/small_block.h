// What the formats with one scale for a block have in common, most of them in small blocks: codes
// of four or five bits, and a decoder for all that are d · q, or d · q + m, with d and m in
// binary16. Functions without state; any thread.
#pragma once

#include "base/half.h"
#include "quant/blocks.h"

namespace sluice {

/// The low halves of the bytes, then their high halves: 2 · byte_count codes.
inline void unpack_half_bytes(const uint8_t* bytes, size_t byte_count, int8_t* codes) {
  for (size_t i = 0; i < byte_count; ++i) {
    codes[i] = static_cast<int8_t>(bytes[i] & 15);
    codes[byte_count + i] = static_cast<int8_t>(bytes[i] >> 4);
  }
}

/// Adds to each of 32 codes its fifth bit: bit i of `bits` belongs to element i.
inline void add_fifth_bits(const uint8_t* bits, int8_t* codes) {
  for (size_t i = 0; i < kSmallBlock; ++i)
    codes[i] = static_cast<int8_t>(codes[i] | (bits[i / 8] >> (i % 8) & 1) << 4);
}

template <class Block, size_t kElements, void (*unpack)(const Block&, int8_t*)>
void decode_scaled_codes(const std::byte* blocks, size_t block_count, float* out) {
  for (size_t b = 0; b < block_count; ++b, out += kElements) {
    const auto block = load_block<Block>(blocks, b);
    const float d = f16_to_f32(block.d);
    int8_t q[kElements];
    unpack(block, q);
    for (size_t i = 0; i < kElements; ++i) {
      out[i] = d * static_cast<float>(q[i]);
      if constexpr (requires { block.m; }) out[i] += f16_to_f32(block.m);
    }
  }
}

}  // namespace sluice
