#include "kernels/avx2/avx2.h"
#include "kernels/avx2/panel_matmul.h"
#include "quant/blocks.h"

namespace sluice::kernels::avx2 {
namespace {

/// Codes are q = 0 … 15 and stand for q − 8, so 8 · Σ x comes off each sum.
struct Q40 {
  static constexpr size_t kElements = kSmallBlock;
  static constexpr size_t kBlockBytes = sizeof(BlockQ4_0);
  static constexpr size_t kChunk = 64;

  struct PanelBlock {
    alignas(32) uint8_t codes[kSmallBlock / 8][2][32];  ///< [8 columns][half A, B][4 rows]
    float d[kPanelRows];
  };

  static __m256 add_block(__m256 d, const Activations& x, __m256i sums, __m256 acc) {
    const __m256i excess = _mm256_set1_epi32(8 * (x.sum16[0] + x.sum16[1]));
    const __m256 scale = _mm256_mul_ps(d, _mm256_set1_ps(*x.scale));
    return _mm256_fmadd_ps(scale, _mm256_cvtepi32_ps(_mm256_sub_epi32(sums, excess)), acc);
  }

  static __m256i codes(const std::byte* block) {
    const __m128i both = load16(block + offsetof(BlockQ4_0, qs));
    return low_half_bytes(_mm256_setr_m128i(both, _mm_srli_epi16(both, 4)));
  }

  static __m256 add_rows(const std::byte* const* blocks, const Activations& x, __m256 acc) {
    const __m256i xq = load32(x.q);
    __m256i sums[kPanelRows];
#pragma GCC unroll 8
    for (size_t r = 0; r < kPanelRows; ++r)
      sums[r] = widen_pairs(_mm256_maddubs_epi16(codes(blocks[r]), xq));
    return add_block(half_of_each(blocks, offsetof(BlockQ4_0, d)), x, sum_each(sums), acc);
  }

  static void unpack(const std::byte* const* blocks, PanelBlock& panel) {
    __m256i low[4];
    __m256i high[4];
#pragma GCC unroll 4
    for (size_t j = 0; j < 4; ++j) {
      constexpr size_t kOffset = offsetof(BlockQ4_0, qs);
      const __m256i both = load16_each(blocks[j] + kOffset, blocks[j + 4] + kOffset);
      low[j] = low_half_bytes(both);
      high[j] = low_half_bytes(_mm256_srli_epi16(both, 4));
    }
    interleave(low, panel.codes[0][0]);
    interleave(high, panel.codes[2][0]);
    _mm256_store_ps(panel.d, half_of_each(blocks, offsetof(BlockQ4_0, d)));
  }

  /// Σ q·x of one half. All four pair sums fit an int16: 4 · 15 · 127 · 2 < 2^15.
  template <size_t N>
  static void sum_half(const PanelBlock& panel, size_t half, const Activations* x, __m256i* sums) {
    __m256i pairs[N];
#pragma GCC unroll 4
    for (size_t i = 0; i < kSmallBlock / 8; ++i) {
      const __m256i q = load32(panel.codes[i][half]);
#pragma GCC unroll 4
      for (size_t n = 0; n < N; ++n) {
        const __m256i products = _mm256_maddubs_epi16(q, broadcast8(x[n].q + 8 * i));
        pairs[n] = i == 0 ? products : _mm256_add_epi16(pairs[n], products);
        keep(pairs[n]);
      }
    }
#pragma GCC unroll 4
    for (size_t n = 0; n < N; ++n) sums[n] = widen_pairs(pairs[n]);
  }

  template <size_t N>
  static void add_panel(const PanelBlock& panel, const Activations* x, __m256* acc) {
    __m256i a[N];
    __m256i b[N];
    sum_half<N>(panel, 0, x, a);
    sum_half<N>(panel, 1, x, b);
    const __m256 d = _mm256_load_ps(panel.d);
#pragma GCC unroll 4
    for (size_t n = 0; n < N; ++n) acc[n] = add_block(d, x[n], add_pairs(a[n], b[n]), acc[n]);
  }
};

}  // namespace

void matvec_q4_0(const MatmulArgs& args) {
  matvec<Q40>(args);
}
void matmul_q4_0(const MatmulArgs& args) {
  matmul<Q40>(args);
}

}  // namespace sluice::kernels::avx2
