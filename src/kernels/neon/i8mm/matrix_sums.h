// Integer products of a panel with tokens, by smmla: two rows of eight bytes times two tokens of
// eight bytes give four int32 and take 32 products, twice as many as sdot. The lanes are row 0 with
// token 0, row 0 with token 1, row 1 with token 0, row 1 with token 1. The members are those of
// DotSums (dot_sums.h).
#pragma once

#include "kernels/neon/dot_sums.h"

namespace sluice::kernels::neon {
namespace {

/// For each of a panel's rows and N tokens, an int32. The last of an odd number of tokens is its
/// own partner.
template <size_t N>
struct MatrixSums {
  static constexpr size_t kPairs = (N + 1) / 2;
  int32x4_t sums[kPairs][4];  ///< [two tokens][two rows]

  /// Arranges 16 codes of each row as [8 columns][two rows].
  static void arrange(const int8x16_t* rows, PanelCodes& codes) {
    for (size_t pair = 0; pair < 4; ++pair) {
      const int64x2_t a = vreinterpretq_s64_s8(rows[2 * pair]);
      const int64x2_t b = vreinterpretq_s64_s8(rows[2 * pair + 1]);
      vst1q_s8(codes.bytes + 16 * pair, vreinterpretq_s8_s64(vzip1q_s64(a, b)));
      vst1q_s8(codes.bytes + 64 + 16 * pair, vreinterpretq_s8_s64(vzip2q_s64(a, b)));
    }
  }

  /// Adds the products of 16 columns, which token n has at x[n].q + column.
  void add(const PanelCodes& codes, const Activations* x, size_t column) {
#pragma GCC unroll 2
    for (size_t m = 0; m < kPairs; ++m) {
      const size_t partner = 2 * m + 1 < N ? 2 * m + 1 : 2 * m;
      const int64x2_t a = vreinterpretq_s64_s8(vld1q_s8(x[2 * m].q + column));
      const int64x2_t b = vreinterpretq_s64_s8(vld1q_s8(x[partner].q + column));
      const int8x16_t low = vreinterpretq_s8_s64(vzip1q_s64(a, b));
      const int8x16_t high = vreinterpretq_s8_s64(vzip2q_s64(a, b));
#pragma GCC unroll 4
      for (size_t pair = 0; pair < 4; ++pair) {
        const int8x16_t first = vld1q_s8(codes.bytes + 16 * pair);
        const int8x16_t second = vld1q_s8(codes.bytes + 64 + 16 * pair);
        sums[m][pair] = vmmlaq_s32(vmmlaq_s32(sums[m][pair], first, low), second, high);
      }
    }
  }

  /// Adds other sums, each times the scale of its row.
  void add_scaled(const MatrixSums& other, const int32_t* scales) {
#pragma GCC unroll 2
    for (size_t half = 0; half < 2; ++half) {
      const int32x4_t four = vld1q_s32(scales + 4 * half);
      const int32x4_t low = vzip1q_s32(four, four);
      const int32x4_t high = vzip2q_s32(four, four);
#pragma GCC unroll 2
      for (size_t m = 0; m < kPairs; ++m) {
        int32x4_t* to = sums[m] + 2 * half;
        const int32x4_t* from = other.sums[m] + 2 * half;
        to[0] = vmlaq_s32(to[0], from[0], low);
        to[1] = vmlaq_s32(to[1], from[1], high);
      }
    }
  }

  /// Token n's sums of rows 4·half … 4·half + 3.
  int32x4_t of_rows(size_t n, size_t half) const {
    const int32x4_t* pairs = sums[n / 2] + 2 * half;
    return n % 2 == 0 ? vuzp1q_s32(pairs[0], pairs[1]) : vuzp2q_s32(pairs[0], pairs[1]);
  }
};

}  // namespace
}  // namespace sluice::kernels::neon
