#include "quant/activation.h"

#include <bit>

#include "base/half.h"

namespace sluice {
namespace {

/// |x| as an integer: orders like the magnitudes, and puts infinity and then NaN above them all.
uint32_t magnitude_bits(float x) {
  return std::bit_cast<uint32_t>(x) & 0x7fffffffu;
}

/// Rounds to nearest, ties to even. A finite product is in −127 … 127 by construction; infinity
/// and NaN (from subnormal or non-finite blocks) give 0.
int8_t round_product(float product) {
  constexpr float kRound = 12582912.0f;  // 1.5 · 2^23: adding it leaves no fraction bits
  if (magnitude_bits(product) >= 0x7f800000u) return 0;
  return static_cast<int8_t>((product + kRound) - kRound);
}

void quantize_block(const float* x, size_t count, float inverse, int8_t* q, int16_t* sum16) {
  for (size_t group = 0; group < count / 16; ++group) {
    int sum = 0;
    for (size_t i = 16 * group; i < 16 * (group + 1); ++i) {
      q[i] = round_product(x[i] * inverse);
      sum += q[i];
    }
    sum16[group] = static_cast<int16_t>(sum);
  }
}

}  // namespace

void quantize_q8_256(const float* x, size_t cols, const QuantizedRow& row) {
  for (size_t block = 0; block < cols / kSuperBlock; ++block) {
    const size_t first = block * kSuperBlock;
    float largest = 0.0f;
    for (size_t i = first; i < first + kSuperBlock; ++i)
      if (magnitude_bits(x[i]) > magnitude_bits(largest)) largest = x[i];
    const bool all_zero = largest == 0.0f;
    const float inverse = all_zero ? 0.0f : -127.0f / largest;
    quantize_block(x + first, kSuperBlock, inverse, row.q + first, row.sum16 + first / 16);
    row.scale[block] = all_zero ? 0.0f : 1.0f / inverse;
  }
}

void quantize_q8_32(const float* x, size_t cols, const QuantizedRow& row) {
  for (size_t block = 0; block < cols / kSmallBlock; ++block) {
    const size_t first = block * kSmallBlock;
    uint32_t largest = 0;
    for (size_t i = first; i < first + kSmallBlock; ++i)
      largest = magnitude_bits(x[i]) > largest ? magnitude_bits(x[i]) : largest;
    const float d = std::bit_cast<float>(largest) / 127.0f;
    const float inverse = d != 0.0f ? 1.0f / d : 0.0f;
    quantize_block(x + first, kSmallBlock, inverse, row.q + first, row.sum16 + first / 16);
    row.scale[block] = f16_to_f32(f32_to_f16(d));
  }
}

}  // namespace sluice
