// Codes of two bits, as Q2_K, Q3_K and TQ2_0 hold them: quant/blocks.h says how they lie.
#pragma once

#include "kernels/avx512/row_super_block.h"

namespace sluice::kernels::avx512 {
namespace {

/// The codes of 128 columns, 32 bytes of each row, are two runs. Runs are to be taken in ascending
/// order.
class TwoBits {
 public:
  inline void unpack_run(const PanelBlocks& blocks, size_t offset, size_t index, Run& run) {
    if (index % 2 == 0) {
      load_dwords(blocks, offset + 16 * index, packed_);
      load_dwords(blocks, offset + 16 * index + 16, packed_ + 4);
    }
    const __m512i two_bits = _mm512_set1_epi8(3);
    const int shift = 4 * static_cast<int>(index % 2);
    for (size_t i = 0; i < 8; ++i) {
      const __m512i low = _mm512_srlv_epi32(packed_[i], _mm512_set1_epi32(shift));
      run[i] = _mm512_and_si512(low, two_bits);
      run[8 + i] = _mm512_and_si512(_mm512_srli_epi32(low, 2), two_bits);
    }
  }

 private:
  __m512i packed_[8];  ///< 32 bytes of each row: those of this run and of the one beside it
};

/// The codes of a row's 256 columns, each shift of 64 bytes in a register (row_super_block.h).
struct RowTwoBits {
  static constexpr size_t column(size_t k, size_t quarter) {
    return 32 * k + 128 * (quarter / 2) + 16 * (quarter % 2);
  }

  static inline void take(const std::byte* qs, __m512i (&codes)[4]) {
    const __m512i bytes = _mm512_loadu_si512(qs);
    codes[0] = _mm512_and_si512(bytes, _mm512_set1_epi8(3));
    for (size_t k = 1; k < 4; ++k) codes[k] = take_bits<2>(bytes, 2 * k);
  }
};

}  // namespace
}  // namespace sluice::kernels::avx512
