// Activations to int8, as quant/activation.h defines it. Magnitudes compare as integers (the bits
// of |x|), so that infinity and NaN are ordered as in the definition.
#include "quant/activation.h"

#include "kernels/neon/intrinsics.h"
#include "kernels/neon/neon.h"

namespace sluice::kernels::neon {
namespace {

inline uint32x4_t magnitude_bits(float32x4_t x) {
  return vreinterpretq_u32_f32(vabsq_f32(x));
}

inline uint32_t largest_magnitude(const float* x, size_t count) {
  uint32x4_t largest = vdupq_n_u32(0);
  for (size_t i = 0; i < count; i += 4)
    largest = vmaxq_u32(largest, magnitude_bits(vld1q_f32(x + i)));
  return vmaxvq_u32(largest);
}

/// The first of `count` values that has the largest magnitude.
inline float largest_value(const float* x, size_t count) {
  const uint32x4_t bits = vdupq_n_u32(largest_magnitude(x, count));
  for (size_t i = 0; i < count; i += 4) {
    const uint32x4_t equal = vceqq_u32(magnitude_bits(vld1q_f32(x + i)), bits);
    if (vmaxvq_u32(equal) == 0) continue;
    while (load_integer<uint32_t>(x + i) << 1 != bits[0] << 1) ++i;
    return x[i];
  }
  return 0.0f;
}

/// round_half_even(x · inverse) of four values; 0 where that is not finite.
inline int32x4_t round_products(const float* x, float inverse) {
  const float32x4_t product = vmulq_n_f32(vld1q_f32(x), inverse);
  const uint32x4_t finite = vcltq_u32(magnitude_bits(product), vdupq_n_u32(0x7f800000));
  return vandq_s32(vcvtnq_s32_f32(product), vreinterpretq_s32_u32(finite));
}

inline void quantize_block(const float* x, size_t count, float inverse, int8_t* q, int16_t* sum16) {
  for (size_t i = 0; i < count; i += 16) {
    const int16x8_t low = vcombine_s16(vmovn_s32(round_products(x + i, inverse)),
                                       vmovn_s32(round_products(x + i + 4, inverse)));
    const int16x8_t high = vcombine_s16(vmovn_s32(round_products(x + i + 8, inverse)),
                                        vmovn_s32(round_products(x + i + 12, inverse)));
    const int8x16_t packed = vcombine_s8(vmovn_s16(low), vmovn_s16(high));
    vst1q_s8(q + i, packed);
    sum16[i / 16] = vaddlvq_s8(packed);
  }
}

inline float round_to_f16(float x) {
  return vcvt_f32_f16(vcvt_f16_f32(vdupq_n_f32(x)))[0];
}

}  // namespace

void quantize_q8_256(const float* x, size_t cols, const QuantizedRow& row) {
  for (size_t first = 0; first < cols; first += kSuperBlock) {
    const float largest = largest_value(x + first, kSuperBlock);
    const float inverse = largest == 0.0f ? 0.0f : -127.0f / largest;
    quantize_block(x + first, kSuperBlock, inverse, row.q + first, row.sum16 + first / 16);
    row.scale[first / kSuperBlock] = largest == 0.0f ? 0.0f : 1.0f / inverse;
  }
}

void quantize_q8_32(const float* x, size_t cols, const QuantizedRow& row) {
  for (size_t first = 0; first < cols; first += kSmallBlock) {
    const uint32_t largest = largest_magnitude(x + first, kSmallBlock);
    const float d = load_integer<float>(&largest) / 127.0f;
    const float inverse = d != 0.0f ? 1.0f / d : 0.0f;
    quantize_block(x + first, kSmallBlock, inverse, row.q + first, row.sum16 + first / 16);
    row.scale[first / kSmallBlock] = round_to_f16(d);
  }
}

}  // namespace sluice::kernels::neon
