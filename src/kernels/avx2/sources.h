// Reading packed codes: one description of a format serves a register that holds 32 columns of one
// row, and one that holds 16 columns of each of two rows, as panels want them (panel.h).
#pragma once

#include "kernels/avx2/panel.h"

namespace sluice::kernels::avx2 {
namespace {

/// Where a format's packed bytes come from: one block, of which a register holds 32 columns …
struct OneBlock {
  const std::byte* block;

  /// The 32 bytes at `offset`, a column in each.
  __m256i load(size_t offset) const { return load32(block + offset); }

  /// The 16 bytes at `offset`, whose low halves are 16 columns and high halves the 16 after. What
  /// is left in the upper half of each byte does not matter.
  __m256i load_halves(size_t offset) const {
    const __m128i both = load16(block + offset);
    return _mm256_setr_m128i(both, _mm_srli_epi16(both, 4));
  }
};

/// … or two blocks, and 16 columns of each: the first or the second half of those of OneBlock.
struct TwoBlocks {
  const std::byte* low;
  const std::byte* high;
  size_t piece;  ///< 0 or 1

  __m256i load(size_t offset) const {
    return load16_each(low + offset + 16 * piece, high + offset + 16 * piece);
  }

  __m256i load_halves(size_t offset) const {
    const __m256i both = load16_each(low + offset, high + offset);
    return piece == 0 ? both : _mm256_srli_epi16(both, 4);
  }
};

/// The columns from 32·g on of codes of two bits; quant/blocks.h says how they lie.
template <class Source>
inline __m256i two_bits(const Source& source, size_t offset, size_t g) {
  const __m256i four = source.load(offset + 32 * (g / 4));
  const __m256i shifted = _mm256_srli_epi16(four, static_cast<int>(2 * (g % 4)));
  return _mm256_and_si256(shifted, _mm256_set1_epi8(3));
}

}  // namespace
}  // namespace sluice::kernels::avx2
