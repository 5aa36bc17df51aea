// Integer products of a panel with tokens, by sdot: each of its four int32 lanes takes the products
// of four bytes. A panel's register holds four columns of four rows, the four bytes of activations
// go to every lane alike, and so lanes are rows.
//
// i8mm/matrix_sums.h does the same with other instructions; the two have the same members, and the
// families of formats (super_block.h, plain_block.h) take one or the other.
#pragma once

#include "kernels/neon/panel_matmul.h"

namespace sluice::kernels::neon {
namespace {

/// 16 columns of a panel's codes, in the order that the products want.
struct PanelCodes {
  int8_t bytes[kPanelRows * 16];
};

/// For each of a panel's rows and N tokens, an int32.
template <size_t N>
struct DotSums {
  int32x4_t sums[N][2];  ///< [token][four rows]

  /// Arranges 16 codes of each row as [4 columns][four rows].
  static void arrange(const int8x16_t* rows, PanelCodes& codes) {
    for (size_t half = 0; half < 2; ++half) {
      int32x4_t columns[4];
      for (size_t r = 0; r < 4; ++r) columns[r] = vreinterpretq_s32_s8(rows[4 * half + r]);
      transpose(columns);
      for (size_t c = 0; c < 4; ++c)
        vst1q_s8(codes.bytes + 32 * c + 16 * half, vreinterpretq_s8_s32(columns[c]));
    }
  }

  template <int kFour>
  void add_four_columns(const PanelCodes& codes, const int8x16_t* x) {
    const int8x16_t low = vld1q_s8(codes.bytes + 32 * kFour);
    const int8x16_t high = vld1q_s8(codes.bytes + 32 * kFour + 16);
#pragma GCC unroll 4
    for (size_t n = 0; n < N; ++n) {
      sums[n][0] = vdotq_laneq_s32(sums[n][0], low, x[n], kFour);
      sums[n][1] = vdotq_laneq_s32(sums[n][1], high, x[n], kFour);
    }
  }

  /// Adds the products of 16 columns, which token n has at x[n].q + column.
  void add(const PanelCodes& codes, const Activations* x, size_t column) {
    int8x16_t bytes[N];
#pragma GCC unroll 4
    for (size_t n = 0; n < N; ++n) bytes[n] = vld1q_s8(x[n].q + column);
    add_four_columns<0>(codes, bytes);
    add_four_columns<1>(codes, bytes);
    add_four_columns<2>(codes, bytes);
    add_four_columns<3>(codes, bytes);
  }

  /// Adds other sums, each times the scale of its row.
  void add_scaled(const DotSums& other, const int32_t* scales) {
#pragma GCC unroll 2
    for (size_t half = 0; half < 2; ++half) {
      const int32x4_t scale = vld1q_s32(scales + 4 * half);
#pragma GCC unroll 4
      for (size_t n = 0; n < N; ++n)
        sums[n][half] = vmlaq_s32(sums[n][half], other.sums[n][half], scale);
    }
  }

  /// Token n's sums of rows 4·half … 4·half + 3.
  int32x4_t of_rows(size_t n, size_t half) const {
    return sums[n][half];
  }
};

}  // namespace
}  // namespace sluice::kernels::neon
