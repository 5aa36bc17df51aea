// Activation rows: what stands on the right-hand side of a weight row in a dot product.
//
// Weights in F32, F16 or BF16 meet float activations. Quantised weights meet activations quantised
// to int8 once per row, by the scheme of the reference engine so that results stay close to it:
//
//   q8_256 (formats with blocks of 256 values: K, TQ, and IQ except IQ4_NL): per 256 values, the
//     value of largest magnitude `m` (the first of equals, with its sign) gives inverse = −127/m;
//     q = min(127, round_half_even(inverse·x)); scale = 1/inverse, float32. All zero: q = 0,
//     scale = 0.
//   q8_32 (formats with smaller blocks): per 32 values, a = max |x|, d = a/127; inverse = d ≠ 0 ?
//     1/d : 0; q = round_half_even(x·inverse); scale = f16_to_f32(f32_to_f16(d)).
//
// Magnitudes compare as the bits of |x|, so NaN is above infinity. A product that is infinite or
// NaN gives q = 0: a block of tiny subnormals becomes zeros, and a block that holds infinity or NaN
// gets a scale that is infinite or NaN, so that every sum it enters shows it. Hence q is in
// −127 … 127, always.
//
// A row is three arrays in one piece of memory, so that kernels read each with aligned loads:
//
//   int8  q[cols]            at offset 0, padded to a multiple of 64; what the padding holds
//                              never matters
//   float scale[blocks]      one per 256 or 32 values, behind it
//   int16 sum16[cols/16]     the sum of each 16 q's, behind the scales
//
// Rows start on 64-byte boundaries. A float row (ActivationFormat::f32) is just float[cols].
#pragma once

#include <cstddef>
#include <cstdint>

#include "quant/dtype.h"

namespace sluice {

/// Where the arrays of a quantised row lie. Plain arithmetic, so that every layer agrees.
struct ActivationLayout {
  size_t scale_offset;  ///< bytes from the start of the row
  size_t sum16_offset;
  size_t row_bytes;  ///< a multiple of 64
};

constexpr ActivationLayout activation_layout(ActivationFormat format, size_t cols) {
  const auto pad = [](size_t bytes) { return (bytes + 63) / 64 * 64; };
  if (format == ActivationFormat::f32) return {0, 0, pad(cols * sizeof(float))};
  const size_t block = format == ActivationFormat::q8_256 ? kSuperBlock : kSmallBlock;
  const size_t scale_offset = pad(cols);
  const size_t sum16_offset = scale_offset + pad(cols / block * sizeof(float));
  return {scale_offset, sum16_offset, sum16_offset + pad(cols / 16 * sizeof(int16_t))};
}

/// The three arrays of a quantised row, or of a part of it that starts on a block.
struct QuantizedRow {
  int8_t* q;
  float* scale;
  int16_t* sum16;

  /// The part from column `first` on. REQUIRES: first is a multiple of the format's block.
  QuantizedRow from(ActivationFormat format, size_t first) const {
    const size_t block = format == ActivationFormat::q8_256 ? kSuperBlock : kSmallBlock;
    return {q + first, scale + first / block, sum16 + first / 16};
  }
};

inline QuantizedRow quantized_row(ActivationFormat format, size_t cols, std::byte* row) {
  const ActivationLayout layout = activation_layout(format, cols);
  return {reinterpret_cast<int8_t*>(row), reinterpret_cast<float*>(row + layout.scale_offset),
          reinterpret_cast<int16_t*>(row + layout.sum16_offset)};
}

/// The definitions. REQUIRES: cols is a multiple of 256 or 32.
void quantize_q8_256(const float* x, size_t cols, const QuantizedRow& row);
void quantize_q8_32(const float* x, size_t cols, const QuantizedRow& row);

}  // namespace sluice
