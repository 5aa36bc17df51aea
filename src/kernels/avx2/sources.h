// Reading packed codes: one description of a format serves a register that holds 32 columns of one
// row, and one that holds 16 columns of each of two rows, as panels want them (panel.h).
#pragma once

#include "kernels/avx2/panel.h"

namespace sluice::kernels::avx2 {
namespace {

/// Where a format's packed bytes come from: 32 bytes at an offset of one block …
struct OneBlock {
  const std::byte* block;
  __m256i load(size_t offset) const { return load32(block + offset); }
};

/// … or 16 of them (the first, or the other piece) of each of two blocks.
struct TwoBlocks {
  const std::byte* low;
  const std::byte* high;
  size_t piece;  ///< 0 or 1
  __m256i load(size_t offset) const {
    return load16_each(low + offset + 16 * piece, high + offset + 16 * piece);
  }
};

/// Register g of codes of four bits: the low halves of 32 bytes, then their high halves.
template <class Source>
inline __m256i four_bits(const Source& source, size_t offset, size_t g) {
  const __m256i both = source.load(offset + 32 * (g / 2));
  const __m256i shifted = g % 2 == 0 ? both : _mm256_srli_epi16(both, 4);
  return low_half_bytes(shifted);
}

/// Register g of codes of two bits; quant/blocks.h says how they lie.
template <class Source>
inline __m256i two_bits(const Source& source, size_t offset, size_t g) {
  const __m256i four = source.load(offset + 32 * (g / 4));
  const __m256i shifted = _mm256_srli_epi16(four, static_cast<int>(2 * (g % 4)));
  return _mm256_and_si256(shifted, _mm256_set1_epi8(3));
}

}  // namespace
}  // namespace sluice::kernels::avx2
