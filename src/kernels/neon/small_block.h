// The formats in blocks of 32 columns with one scale. Codes are signed bytes that already mean the
// true weight.
//
// A format is a struct with
//   Block
//   codes(block, half)     16 of the codes
// and Sums is DotSums or MatrixSums (dot_sums.h).
#pragma once

#include "kernels/neon/dot_sums.h"

namespace sluice::kernels::neon {
namespace {

template <class Format, template <size_t> class Sums>
struct SmallBlocks {
  using Block = typename Format::Block;
  static constexpr size_t kElements = kSmallBlock;
  static constexpr size_t kBlockBytes = sizeof(Block);
  static constexpr size_t kChunk = 64;

  struct PanelBlock {
    PanelCodes codes[2];
    float d[kPanelRows];
  };

  static float32x4_t add_block(float32x4_t d, const Activations& x, int32x4_t sums,
                               float32x4_t acc) {
    return vfmaq_f32(acc, vmulq_f32(d, vdupq_n_f32(*x.scale)), vcvtq_f32_s32(sums));
  }

  static float32x4_t add_rows(const std::byte* const* blocks, const Activations& x,
                              float32x4_t acc) {
    const int8x16_t low = vld1q_s8(x.q);
    const int8x16_t high = vld1q_s8(x.q + 16);
    int32x4_t sums[kLanes];
#pragma GCC unroll 4
    for (size_t r = 0; r < kLanes; ++r) {
      sums[r] = vdotq_s32(vdupq_n_s32(0), Format::codes(blocks[r], 0), low);
      sums[r] = vdotq_s32(sums[r], Format::codes(blocks[r], 1), high);
    }
    return add_block(half_of_each(blocks, offsetof(Block, d)), x, sum_each(sums), acc);
  }

  static void unpack(const std::byte* const* blocks, PanelBlock& panel) {
    for (size_t half = 0; half < 2; ++half) {
      int8x16_t rows[kPanelRows];
      for (size_t r = 0; r < kPanelRows; ++r) rows[r] = Format::codes(blocks[r], half);
      Sums<1>::arrange(rows, panel.codes[half]);
      vst1q_f32(panel.d + kLanes * half, half_of_each(blocks + kLanes * half, offsetof(Block, d)));
    }
  }

  template <size_t N>
  static void add_panel(const PanelBlock& panel, const Activations* x, PanelFloats* acc) {
    Sums<N> sums = {};
    sums.add(panel.codes[0], x, 0);
    sums.add(panel.codes[1], x, 16);
#pragma GCC unroll 4
    for (size_t n = 0; n < N; ++n)
      for (size_t half = 0; half < 2; ++half)
        acc[n].four[half] = add_block(vld1q_f32(panel.d + kLanes * half), x[n],
                                      sums.of_rows(n, half), acc[n].four[half]);
  }
};

}  // namespace
}  // namespace sluice::kernels::neon
