// The formats in super-blocks of 256 columns, whose sub-blocks of 16 or 32 carry integer scales.
//
// Codes are signed bytes that already mean the true weight, since the products are of signed bytes;
// only a format with mins needs the sums of the activations. All is int32: sums of a sub-block,
// times its scale, added up.
//
// A format is a struct with
//   Block
//   kSubBlock              columns per scale
//   codes(block, g)        the codes of the columns from 16·g on
//   scales(block)          of the sub-blocks, in order
//   mins(block)            the same, if the format has any: then Block has a dmin beside d
//   kStep                  a power of two that d is to be multiplied by, if there is one
// and Sums is DotSums or MatrixSums (dot_sums.h).
#pragma once

#include "kernels/neon/dot_sums.h"

namespace sluice::kernels::neon {
namespace {

/// An integer for each sub-block of a block.
template <size_t kCount>
struct PerSubBlock {
  int32x4_t four[kCount / 4];

  int32_t operator[](size_t s) const { return four[s / 4][s % 4]; }
};

inline PerSubBlock<8> widen(uint8x8_t bytes) {
  const uint16x8_t words = vmovl_u8(bytes);
  return {{vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(words))),
           vreinterpretq_s32_u32(vmovl_high_u16(words))}};
}

inline PerSubBlock<16> widen(int16x8_t low, int16x8_t high) {
  return {{vmovl_s16(vget_low_s16(low)), vmovl_high_s16(low), vmovl_s16(vget_low_s16(high)),
           vmovl_high_s16(high)}};
}

inline PerSubBlock<16> widen(int8x16_t bytes) {
  return widen(vmovl_s8(vget_low_s8(bytes)), vmovl_high_s8(bytes));
}

/// What the activations of each sub-block add up to.
template <size_t kSubBlock>
inline PerSubBlock<kSuperBlock / kSubBlock> activation_sums(const int16_t* sum16) {
  const int16x8_t low = vld1q_s16(sum16);
  const int16x8_t high = vld1q_s16(sum16 + 8);
  if constexpr (kSubBlock == 32)
    return {{vpaddlq_s16(low), vpaddlq_s16(high)}};
  else
    return widen(low, high);
}

template <class Format, template <size_t> class Sums>
struct SuperBlocks {
  using Block = typename Format::Block;
  static constexpr size_t kElements = kSuperBlock;
  static constexpr size_t kActivationColumns = kSuperBlock;
  static constexpr size_t kBlockBytes = sizeof(Block);
  static constexpr size_t kChunk = 8;
  static constexpr size_t kGroups = kSuperBlock / 16;
  static constexpr size_t kSubBlocks = kSuperBlock / Format::kSubBlock;
  static constexpr size_t kSubBlockGroups = Format::kSubBlock / 16;
  static constexpr bool kHasMin = requires(const std::byte* block) { Format::mins(block); };
  using Integers = PerSubBlock<kSubBlocks>;

  struct PanelBlock {
    PanelCodes codes[kGroups];
    int32_t scales[kSubBlocks][kPanelRows];
    int32_t mins[kHasMin ? kSubBlocks : 1][kPanelRows];
    float d[kPanelRows];
    float dmin[kPanelRows];
  };

  static float32x4_t scales_of_blocks(const std::byte* const* blocks) {
    const float32x4_t d = half_of_each(blocks, offsetof(Block, d));
    if constexpr (requires { Format::kStep; })
      return vmulq_n_f32(d, Format::kStep);
    else
      return d;
  }

  /// The float steps of one block for four rows.
  static float32x4_t add_block(float32x4_t d, float32x4_t a, int32x4_t scaled, float32x4_t acc) {
    return vfmaq_f32(acc, vmulq_f32(d, a), vcvtq_f32_s32(scaled));
  }
  static float32x4_t add_min(float32x4_t dmin, float32x4_t a, int32x4_t mins, float32x4_t acc) {
    return vfmsq_f32(acc, vmulq_f32(dmin, a), vcvtq_f32_s32(mins));
  }

  /// Σ scale · Σ q·x of one row's block, over the lanes.
  static int32x4_t scaled_products(const std::byte* block, const int8_t* x) {
    const Integers scales = Format::scales(block);
    int32x4_t scaled = vdupq_n_s32(0);
#pragma GCC unroll 16
    for (size_t s = 0; s < kSubBlocks; ++s) {
      int32x4_t products = vdupq_n_s32(0);
#pragma GCC unroll 2
      for (size_t g = s * kSubBlockGroups; g < (s + 1) * kSubBlockGroups; ++g)
        products = vdotq_s32(products, Format::codes(block, g), vld1q_s8(x + 16 * g));
      scaled = vmlaq_n_s32(scaled, products, scales[s]);
    }
    return scaled;
  }

  static float32x4_t add_rows(const std::byte* const* blocks, const Activations& x,
                              float32x4_t acc) {
    int32x4_t rows[kLanes];
#pragma GCC unroll 4
    for (size_t r = 0; r < kLanes; ++r) rows[r] = scaled_products(blocks[r], x.q);
    const float32x4_t a = vdupq_n_f32(*x.scale);
    acc = add_block(scales_of_blocks(blocks), a, sum_each(rows), acc);
    if constexpr (kHasMin) {
      const Integers sums = activation_sums<Format::kSubBlock>(x.sum16);
#pragma GCC unroll 4
      for (size_t r = 0; r < kLanes; ++r) {
        const Integers mins = Format::mins(blocks[r]);
        rows[r] = vmulq_s32(mins.four[0], sums.four[0]);
        for (size_t i = 1; i < kSubBlocks / 4; ++i)
          rows[r] = vmlaq_s32(rows[r], mins.four[i], sums.four[i]);
      }
      acc = add_min(half_of_each(blocks, offsetof(Block, dmin)), a, sum_each(rows), acc);
    }
    return acc;
  }

  /// Puts what each of the panel's blocks has per sub-block side by side.
  static void arrange(const Integers* of_row, int32_t (*to)[kPanelRows]) {
    for (size_t half = 0; half < 2; ++half) {
      for (size_t i = 0; i < kSubBlocks / 4; ++i) {
        int32x4_t rows[kLanes];
        for (size_t r = 0; r < kLanes; ++r) rows[r] = of_row[kLanes * half + r].four[i];
        transpose(rows);
        for (size_t s = 0; s < 4; ++s) vst1q_s32(to[4 * i + s] + kLanes * half, rows[s]);
      }
    }
  }

  static void unpack(const std::byte* const* blocks, PanelBlock& panel) {
#pragma GCC unroll 16
    for (size_t g = 0; g < kGroups; ++g) {
      int8x16_t rows[kPanelRows];
      for (size_t r = 0; r < kPanelRows; ++r) rows[r] = Format::codes(blocks[r], g);
      Sums<1>::arrange(rows, panel.codes[g]);
    }
    Integers of_row[kPanelRows];
    for (size_t r = 0; r < kPanelRows; ++r) of_row[r] = Format::scales(blocks[r]);
    arrange(of_row, panel.scales);
    if constexpr (kHasMin) {
      for (size_t r = 0; r < kPanelRows; ++r) of_row[r] = Format::mins(blocks[r]);
      arrange(of_row, panel.mins);
    }
    for (size_t r = 0; r < kPanelRows; r += kLanes) {
      vst1q_f32(panel.d + r, scales_of_blocks(blocks + r));
      if constexpr (kHasMin)
        vst1q_f32(panel.dmin + r, half_of_each(blocks + r, offsetof(Block, dmin)));
    }
  }

  /// Σ min · Σ x of four rows.
  static int32x4_t panel_mins(const PanelBlock& panel, const Integers& sums, size_t half) {
    int32x4_t mins = vdupq_n_s32(0);
#pragma GCC unroll 16
    for (size_t s = 0; s < kSubBlocks; ++s)
      mins = vmlaq_n_s32(mins, vld1q_s32(panel.mins[s] + kLanes * half), sums[s]);
    return mins;
  }

  template <size_t N>
  static void add_panel(const PanelBlock& panel, const Activations* x, PanelFloats* acc) {
    Sums<N> scaled = {};
    for (size_t s = 0; s < kSubBlocks; ++s) {
      Sums<N> products = {};
#pragma GCC unroll 2
      for (size_t g = s * kSubBlockGroups; g < (s + 1) * kSubBlockGroups; ++g)
        products.add(panel.codes[g], x, 16 * g);
      scaled.add_scaled(products, panel.scales[s]);
    }
#pragma GCC unroll 4
    for (size_t n = 0; n < N; ++n) {
      const float32x4_t a = vdupq_n_f32(*x[n].scale);
      for (size_t half = 0; half < 2; ++half) {
        float32x4_t& sum = acc[n].four[half];
        sum = add_block(vld1q_f32(panel.d + kLanes * half), a, scaled.of_rows(n, half), sum);
        if constexpr (kHasMin) {
          const Integers sums = activation_sums<Format::kSubBlock>(x[n].sum16);
          const int32x4_t mins = panel_mins(panel, sums, half);
          sum = add_min(vld1q_f32(panel.dmin + kLanes * half), a, mins, sum);
        }
      }
    }
  }
};

}  // namespace
}  // namespace sluice::kernels::neon
