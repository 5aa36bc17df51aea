#include "kernels/avx512/avx512.h"
#include "kernels/avx512/k_header.h"

namespace sluice::kernels::avx512 {
namespace {

struct Q5K : KPanel<BlockQ5_K> {
  inline void unpack_run(const PanelBlocks& blocks, size_t index, Run& run) {
    constexpr size_t kQh = offsetof(BlockQ5_K, qh);
    constexpr size_t kQs = offsetof(BlockQ5_K, qs);
    if (index == 0) {
      load_dwords(blocks, kQh, fifth);
      load_dwords(blocks, kQh + 16, fifth + 4);
    }
    __m512i packed[8];
    load_dwords(blocks, kQs + 32 * index, packed);
    load_dwords(blocks, kQs + 32 * index + 16, packed + 4);
    const __m512i low_half = _mm512_set1_epi8(15);
    const __m512i bit_4 = _mm512_set1_epi8(16);
    const __m512i to_bit_4 = _mm512_set1_epi32(static_cast<int>(2 * index + 28) % 32);
    for (size_t i = 0; i < 8; ++i) {
      const __m512i low = _mm512_and_si512(packed[i], low_half);
      const __m512i high = _mm512_and_si512(_mm512_srli_epi32(packed[i], 4), low_half);
      // Bits 2·index and 2·index + 1 of each byte come to lie in its bits 4 and 5.
      const __m512i moved = _mm512_rorv_epi32(fifth[i], to_bit_4);
      run[i] = _mm512_or_si512(low, _mm512_and_si512(moved, bit_4));
      run[8 + i] = _mm512_or_si512(high, _mm512_and_si512(_mm512_srli_epi32(moved, 1), bit_4));
    }
  }

  __m512i fifth[8];  ///< the fifth bits of all columns: qh
};

struct Q5KRows : KRows<Q5K> {
  static inline void codes(const std::byte* block, __m512i (&codes)[4]) {
    constexpr size_t kQh = offsetof(BlockQ5_K, qh);
    constexpr size_t kQs = offsetof(BlockQ5_K, qs);
    const __m512i fifths =
        _mm512_broadcast_i64x4(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(block + kQh)));
    for (size_t i = 0; i < 2; ++i) {
      const __m512i both = _mm512_loadu_si512(block + kQs + 64 * i);
      codes[2 * i] = low_half_bytes_or(both, move_bits<1, 4>(fifths, 4 * i, 4 * i + 2));
      codes[2 * i + 1] =
          _mm512_or_si512(high_half_bytes(both), move_bits<1, 4>(fifths, 4 * i + 1, 4 * i + 3));
    }
  }
};

}  // namespace

void matvec_q5_k(const MatmulArgs& args) {
  multiply_rows<RowSuperBlocks<Q5KRows>>(args);
}
void matmul_q5_k(const MatmulArgs& args) {
  multiply_panels<SuperBlocks<Q5K>>(args);
}

}  // namespace sluice::kernels::avx512
