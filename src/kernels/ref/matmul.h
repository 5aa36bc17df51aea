// The two loops behind every matmul: over quantised blocks, and over float elements. A format gives
// the loop one function (its block's step, or its widening to float) and is done in a few lines.
// Where a block of weights spans several of the activations, its step is taken for each of them.
//
// Rows outside, tokens inside; each output is computed alone, in the order that defines it. The
// functions are static, so that nothing here can be shared with code compiled for another ISA.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "kernels/kernels.h"
#include "kernels/ref/sum16.h"
#include "quant/blocks.h"

namespace sluice::kernels::ref {

/// One block of an activation row.
struct ActivationBlock {
  const int8_t* q;
  const int16_t* sum16;
  float scale;
};

/// Σ q·x over `count` elements, exact.
static inline int32_t integer_dot(const int8_t* q, const int8_t* x, size_t count) {
  int32_t sum = 0;
  for (size_t i = 0; i < count; ++i) sum += q[i] * x[i];
  return sum;
}

static inline const std::byte* activation_row(const MatmulArgs& args, size_t token) {
  const size_t row =
      args.token_rows != nullptr ? static_cast<size_t>(args.token_rows[token]) : token;
  return args.activations + row * args.activation_stride;
}

/// The step of most formats: Σ q·x of `count` columns, times d and the activation's scale.
static inline float add_scaled(float d, const int8_t* q, const ActivationBlock& x, size_t count,
                               float acc) {
  return std::fma(d * x.scale, static_cast<float>(integer_dot(q, x.q, count)), acc);
}

/// The step for what Q4_1 and Q5_1 add to each weight of a block of 32.
static inline float add_offset(float m, const ActivationBlock& x, float acc) {
  return std::fma(m * x.scale, static_cast<float>(x.sum16[0] + x.sum16[1]), acc);
}

/// A block of weights meets kParts blocks of activations: add_part(block, part, x, acc) returns acc
/// with the terms of one of them added.
template <class Block, ActivationFormat kFormat, size_t kParts,
          float (*add_part)(const Block&, size_t, const ActivationBlock&, float)>
static void matmul_parts(const MatmulArgs& args) {
  constexpr size_t kElements = kFormat == ActivationFormat::q8_256 ? kSuperBlock : kSmallBlock;
  const ActivationLayout layout = activation_layout(kFormat, args.cols);
  for (size_t r = 0; r < args.row_count; ++r) {
    const std::byte* weights = args.weights + r * args.row_bytes;
    for (size_t t = 0; t < args.token_count; ++t) {
      const std::byte* row = activation_row(args, t);
      const auto* q = reinterpret_cast<const int8_t*>(row);
      const auto* scale = reinterpret_cast<const float*>(row + layout.scale_offset);
      const auto* sum16 = reinterpret_cast<const int16_t*>(row + layout.sum16_offset);
      float acc = 0.0f;
      for (size_t b = 0; b < args.cols / kElements; ++b) {
        const ActivationBlock x = {q + b * kElements, sum16 + b * kElements / 16, scale[b]};
        acc = add_part(load_block<Block>(weights, b / kParts), b % kParts, x, acc);
      }
      args.out[t * args.out_stride + r] = acc;
    }
  }
}

template <class Block, float (*add_block)(const Block&, const ActivationBlock&, float)>
static float add_only_part(const Block& block, size_t, const ActivationBlock& x, float acc) {
  return add_block(block, x, acc);
}

/// Block meets block: add_block(block, x, acc) returns acc with one block's terms added.
template <class Block, ActivationFormat kFormat,
          float (*add_block)(const Block&, const ActivationBlock&, float)>
static void matmul_blocks(const MatmulArgs& args) {
  matmul_parts<Block, kFormat, 1, add_only_part<Block, add_block>>(args);
}

/// widen(element) returns the stored weight as a float.
template <class Element, float (*widen)(Element)>
static void matmul_floats(const MatmulArgs& args) {
  for (size_t r = 0; r < args.row_count; ++r) {
    const std::byte* weights = args.weights + r * args.row_bytes;
    for (size_t t = 0; t < args.token_count; ++t) {
      const auto* x = reinterpret_cast<const float*>(activation_row(args, t));
      Sum16 sum;
      for (size_t i = 0; i < args.cols; ++i) {
        const float w = widen(load_block<Element>(weights, i));
        sum.lane(i) = std::fma(w, x[i], sum.lane(i));
      }
      args.out[t * args.out_stride + r] = sum.total();
    }
  }
}

}  // namespace sluice::kernels::ref
