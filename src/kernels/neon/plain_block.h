// The formats whose only scales are floats: one for each 16, 32 or more columns. Codes are signed
// bytes that already mean the true weight, up to that scale.
//
// A block is a run of sums, each of which meets one scale of the weights and one of the activations
// and becomes one float step. Most blocks are one sum of 32 columns; blocks of more columns have
// more sums; and those of TQ1_0 and TQ2_0 are one sum of 256.
//
// A format is a struct with
//   Block
//   kElements              columns of a block
//   kSumColumns            columns of a sum
//   codes(block, g)        the codes of the columns from 16·g on
//   scales(blocks, s)      the scales of sum s of four blocks
// If Block has an m, that is added to each weight. Sums is DotSums or MatrixSums (dot_sums.h).
#pragma once

#include "kernels/neon/dot_sums.h"

namespace sluice::kernels::neon {
namespace {

/// The beginning of most formats: one binary16 scales the block.
template <class TheBlock, size_t kColumns = kSmallBlock, size_t kColumnsOfSum = kSmallBlock>
struct HalfScaled {
  using Block = TheBlock;
  static constexpr size_t kElements = kColumns;
  static constexpr size_t kSumColumns = kColumnsOfSum;

  static float32x4_t scales(const std::byte* const* blocks, size_t) {
    return half_of_each(blocks, offsetof(Block, d));
  }
};

template <class Format, template <size_t> class Sums>
struct PlainBlocks {
  using Block = typename Format::Block;
  static constexpr size_t kElements = Format::kElements;
  static constexpr size_t kActivationColumns =
      Format::kSumColumns > kSmallBlock ? kSuperBlock : kSmallBlock;
  static constexpr size_t kBlockBytes = sizeof(Block);
  static constexpr size_t kChunk = 64 * kSmallBlock / kElements;
  static constexpr size_t kGroups = kElements / 16;
  static constexpr size_t kSums = kElements / Format::kSumColumns;
  static constexpr size_t kSumGroups = Format::kSumColumns / 16;
  static constexpr bool kHasOffset = requires(Block block) { block.m; };
  static_assert(!kHasOffset || kElements == kSmallBlock);

  struct PanelBlock {
    PanelCodes codes[kGroups];
    float d[kSums][kPanelRows];
    float m[kPanelRows];
  };

  /// The float step of sum s for four rows.
  static float32x4_t add_sum(float32x4_t d, const Activations& x, size_t s, int32x4_t sums,
                             float32x4_t acc) {
    const float a = x.scale[s * Format::kSumColumns / kActivationColumns];
    return vfmaq_f32(acc, vmulq_n_f32(d, a), vcvtq_f32_s32(sums));
  }

  /// The step for what is added to each weight of a block of 32.
  static float32x4_t add_offset(float32x4_t m, const Activations& x, float32x4_t acc) {
    const auto sum = static_cast<float>(x.sum16[0] + x.sum16[1]);
    return vfmaq_n_f32(acc, vmulq_n_f32(m, *x.scale), sum);
  }

  static float32x4_t add_rows(const std::byte* const* blocks, const Activations& x,
                              float32x4_t acc) {
#pragma GCC unroll 4
    for (size_t s = 0; s < kSums; ++s) {
      int32x4_t sums[kLanes];
#pragma GCC unroll 4
      for (size_t r = 0; r < kLanes; ++r) {
        sums[r] = vdupq_n_s32(0);
#pragma GCC unroll 16
        for (size_t g = s * kSumGroups; g < (s + 1) * kSumGroups; ++g)
          sums[r] = vdotq_s32(sums[r], Format::codes(blocks[r], g), vld1q_s8(x.q + 16 * g));
      }
      acc = add_sum(Format::scales(blocks, s), x, s, sum_each(sums), acc);
    }
    if constexpr (kHasOffset) acc = add_offset(half_of_each(blocks, offsetof(Block, m)), x, acc);
    return acc;
  }

  static void unpack(const std::byte* const* blocks, PanelBlock& panel) {
#pragma GCC unroll 16
    for (size_t g = 0; g < kGroups; ++g) {
      int8x16_t rows[kPanelRows];
      for (size_t r = 0; r < kPanelRows; ++r) rows[r] = Format::codes(blocks[r], g);
      Sums<1>::arrange(rows, panel.codes[g]);
    }
    for (size_t r = 0; r < kPanelRows; r += kLanes) {
      for (size_t s = 0; s < kSums; ++s) vst1q_f32(panel.d[s] + r, Format::scales(blocks + r, s));
      if constexpr (kHasOffset)
        vst1q_f32(panel.m + r, half_of_each(blocks + r, offsetof(Block, m)));
    }
  }

  template <size_t N>
  static void add_panel(const PanelBlock& panel, const Activations* x, PanelFloats* acc) {
    for (size_t s = 0; s < kSums; ++s) {
      Sums<N> sums = {};
#pragma GCC unroll 2
      for (size_t g = s * kSumGroups; g < (s + 1) * kSumGroups; ++g)
        sums.add(panel.codes[g], x, 16 * g);
#pragma GCC unroll 4
      for (size_t n = 0; n < N; ++n)
        for (size_t half = 0; half < 2; ++half)
          acc[n].four[half] = add_sum(vld1q_f32(panel.d[s] + kLanes * half), x[n], s,
                                      sums.of_rows(n, half), acc[n].four[half]);
    }
    if constexpr (kHasOffset)
      for (size_t n = 0; n < N; ++n)
        for (size_t half = 0; half < 2; ++half)
          acc[n].four[half] =
              add_offset(vld1q_f32(panel.m + kLanes * half), x[n], acc[n].four[half]);
  }
};

}  // namespace
}  // namespace sluice::kernels::neon
