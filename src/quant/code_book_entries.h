// The steps that unpackers of code-book formats share: entries to codes, and blocks to floats. For
// iq1.cc, iq2.cc and iq3.cc.
#pragma once

#include "base/half.h"
#include "quant/code_book_blocks.h"
#include "quant/code_books.h"

namespace sluice {

/// Eight codes, negative where `signs` has a bit.
inline void put_signed(const int8_t (&codes)[8], uint8_t signs, int8_t* q) {
  for (size_t i = 0; i < 8; ++i)
    q[i] = static_cast<int8_t>((signs >> i) & 1 ? -codes[i] : codes[i]);
}

/// The same with two entries of four.
inline void put_signed(const int8_t (&first)[4], const int8_t (&second)[4], uint8_t signs,
                       int8_t* q) {
  int8_t codes[8];
  for (size_t i = 0; i < 8; ++i) codes[i] = i < 4 ? first[i] : second[i - 4];
  put_signed(codes, signs, q);
}

/// 8 · code ± 1
inline void put_offset(const int8_t (&codes)[8], bool minus, int8_t* q) {
  for (size_t i = 0; i < 8; ++i) q[i] = static_cast<int8_t>(8 * codes[i] + (minus ? -1 : 1));
}

/// 2s + 1 from half a byte: the low half for even `index`.
inline int32_t odd_scale(const uint8_t* halves, size_t index) {
  return 2 * ((halves[index / 2] >> (4 * (index % 2))) & 15) + 1;
}

inline uint32_t load_word(const uint8_t* bytes) {
  return static_cast<uint32_t>(bytes[0] | (bytes[1] << 8));
}

inline uint32_t load_double_word(const uint8_t* bytes) {
  return load_word(bytes) | (load_word(bytes + 2) << 16);
}

template <class Block>
void decode_coded(const std::byte* blocks, size_t block_count, float* out) {
  for (size_t b = 0; b < block_count; ++b, out += kSuperBlock) {
    const auto block = load_block<Block>(blocks, b);
    const CodedBlock coded = unpack_coded(block);
    const float step = f16_to_f32(scale_of(block)) * Block::kStep;
    for (size_t i = 0; i < kSuperBlock; ++i)
      out[i] = step * static_cast<float>(coded.scale[i / 16]) * static_cast<float>(coded.q[i]);
  }
}

}  // namespace sluice
