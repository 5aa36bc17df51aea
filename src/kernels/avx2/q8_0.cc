#include "kernels/avx2/avx2.h"
#include "kernels/avx2/panel_matmul.h"
#include "kernels/avx2/signed_codes.h"
#include "quant/blocks.h"

namespace sluice::kernels::avx2 {
namespace {

struct Q80 {
  static constexpr size_t kElements = kSmallBlock;
  static constexpr size_t kBlockBytes = sizeof(BlockQ8_0);
  static constexpr size_t kChunk = 32;

  /// [8 columns][half A, B][4 rows]
  struct PanelBlock {
    alignas(32) uint8_t magnitudes[kSmallBlock / 8][2][32];
    alignas(32) uint8_t flips[kSmallBlock / 8][2][32];  ///< 255 where w < 0, else 0
    alignas(32) int32_t negative_sums[kPanelRows];      ///< Σ |w| over w < 0
    float d[kPanelRows];
  };

  static __m256 add_block(__m256 d, const Activations& x, __m256i sums, __m256 acc) {
    const __m256 scale = _mm256_mul_ps(d, _mm256_set1_ps(*x.scale));
    return _mm256_fmadd_ps(scale, _mm256_cvtepi32_ps(sums), acc);
  }

  static __m256 add_rows(const std::byte* const* blocks, const Activations& x, __m256 acc) {
    const __m256i xq = load32(x.q);
    __m256i sums[kPanelRows];
#pragma GCC unroll 8
    for (size_t r = 0; r < kPanelRows; ++r) {
      const __m256i w = load32(blocks[r] + offsetof(BlockQ8_0, qs));
      sums[r] = widen_pairs(signed_pairs(w, xq));
    }
    return add_block(half_of_each(blocks, offsetof(BlockQ8_0, d)), x, sum_each(sums), acc);
  }

  static void unpack(const std::byte* const* blocks, PanelBlock& panel) {
#pragma GCC unroll 2
    for (size_t piece = 0; piece < 2; ++piece) {
      __m256i pair[4];
#pragma GCC unroll 4
      for (size_t j = 0; j < 4; ++j) {
        const size_t offset = offsetof(BlockQ8_0, qs) + 16 * piece;
        pair[j] = load16_each(blocks[j] + offset, blocks[j + 4] + offset);
      }
      interleave(pair, panel.magnitudes[2 * piece][0]);
    }
    const __m256i a = split_signs(panel.magnitudes, panel.flips, 0);
    const __m256i b = split_signs(panel.magnitudes, panel.flips, 1);
    store32(panel.negative_sums, add_pairs(widen_pairs(a), widen_pairs(b)));
    _mm256_store_ps(panel.d, half_of_each(blocks, offsetof(BlockQ8_0, d)));
  }

  template <size_t N>
  static void sum_half(const PanelBlock& panel, size_t half, const Activations* x, __m256i* sums) {
#pragma GCC unroll 4
    for (size_t i = 0; i < kSmallBlock / 8; ++i) {
      const __m256i magnitudes = load32(panel.magnitudes[i][half]);
      const __m256i flips = load32(panel.flips[i][half]);
#pragma GCC unroll 4
      for (size_t n = 0; n < N; ++n) {
        const __m256i signed_x = _mm256_xor_si256(broadcast8(x[n].q + 8 * i), flips);
        const __m256i products = widen_pairs(_mm256_maddubs_epi16(magnitudes, signed_x));
        sums[n] = i == 0 ? products : _mm256_add_epi32(sums[n], products);
        keep(sums[n]);
      }
    }
  }

  template <size_t N>
  static void add_panel(const PanelBlock& panel, const Activations* x, __m256* acc) {
    __m256i a[N];
    __m256i b[N];
    sum_half<N>(panel, 0, x, a);
    sum_half<N>(panel, 1, x, b);
    const __m256 d = _mm256_load_ps(panel.d);
    const __m256i negatives = load32(panel.negative_sums);
#pragma GCC unroll 4
    for (size_t n = 0; n < N; ++n) {
      const __m256i sums = _mm256_add_epi32(add_pairs(a[n], b[n]), negatives);
      acc[n] = add_block(d, x[n], sums, acc[n]);
    }
  }
};

}  // namespace

void matvec_q8_0(const MatmulArgs& args) {
  matvec<Q80>(args);
}
void matmul_q8_0(const MatmulArgs& args) {
  matmul<Q80>(args);
}

}  // namespace sluice::kernels::avx2
