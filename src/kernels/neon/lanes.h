// What several kernels need from float lanes: registers of which only some lanes exist, the sum
// over 16 lanes (sum16 of kernels.h) in four registers, and exp of base/elementary.h in vector
// form. Private to the including file.
#pragma once

#include "base/elementary.h"
#include "kernels/neon/intrinsics.h"

namespace sluice::kernels::neon {
namespace {

constexpr size_t kLanes = 4;
constexpr size_t kQuarters = 4;  ///< registers of 16 lanes

/// How many of the elements before n are at i or behind it.
inline size_t left(size_t i, size_t n) {
  return i < n ? n - i : 0;
}

/// Four floats of which only the first `count` exist; the others read as 0 and are not written.
inline float32x4_t load_some(const float* from, size_t count) {
  if (count >= kLanes) return vld1q_f32(from);
  float some[kLanes] = {};
  for (size_t i = 0; i < count; ++i) some[i] = from[i];
  return vld1q_f32(some);
}

inline void store_some(float* to, float32x4_t v, size_t count) {
  if (count >= kLanes) return vst1q_f32(to, v);
  for (size_t i = 0; i < count; ++i) to[i] = v[i];
}

/// All bits set in lanes below `count`.
inline uint32x4_t first_lanes(size_t count) {
  const uint32x4_t lanes = {0, 1, 2, 3};
  return vcltq_u32(lanes, vdupq_n_u32(count < kLanes ? static_cast<uint32_t>(count) : kLanes));
}

/// x where the lane exists, else `other`.
inline float32x4_t first_or(float32x4_t x, size_t count, float other) {
  return vbslq_f32(first_lanes(count), x, vdupq_n_f32(other));
}

/// Lane i += lane i + 8, then i + 4, i + 2, i + 1: the end of sum16.
inline float fold_lanes(const float32x4_t* quarters) {
  const float32x4_t low = vaddq_f32(quarters[0], quarters[2]);
  const float32x4_t high = vaddq_f32(quarters[1], quarters[3]);
  const float32x4_t four = vaddq_f32(low, high);
  const float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
  return two[0] + two[1];
}

/// x > m ? x : m, so that NaN never becomes the maximum. (fmax would let it.)
inline float32x4_t larger(float32x4_t x, float32x4_t m) {
  return vbslq_f32(vcgtq_f32(x, m), x, m);
}

/// x < m ? x : m; NaN becomes m.
inline float32x4_t smaller(float32x4_t x, float32x4_t m) {
  return vbslq_f32(vcltq_f32(x, m), x, m);
}

/// exp_f32 of base/elementary.h.
inline float32x4_t exp_lanes(float32x4_t x) {
  using C = ExpConstants;
  const float32x4_t one = vdupq_n_f32(1.0f);
  const float32x4_t round = vdupq_n_f32(C::kRound);
  const float32x4_t shifted = vfmaq_f32(round, x, vdupq_n_f32(C::kLog2E));
  const float32x4_t n = vsubq_f32(shifted, round);
  float32x4_t r = vfmaq_f32(x, n, vdupq_n_f32(-C::kLn2High));
  r = vfmaq_f32(r, n, vdupq_n_f32(-C::kLn2Low));
  float32x4_t p = vfmaq_f32(vdupq_n_f32(C::kC5), vdupq_n_f32(C::kC6), r);
  p = vfmaq_f32(vdupq_n_f32(C::kC4), p, r);
  p = vfmaq_f32(vdupq_n_f32(C::kC3), p, r);
  p = vfmaq_f32(vdupq_n_f32(C::kC2), p, r);
  p = vfmaq_f32(one, p, r);
  p = vfmaq_f32(one, p, r);
  const uint32x4_t exponent = vshlq_n_u32(vreinterpretq_u32_f32(shifted), 23);
  const uint32x4_t result = vaddq_u32(vreinterpretq_u32_f32(p), exponent);
  const uint32x4_t low = vcltq_f32(x, vdupq_n_f32(C::kLow));
  const uint32x4_t high = vcgtq_f32(x, vdupq_n_f32(C::kHigh));
  const float32x4_t above_low = vreinterpretq_f32_u32(vbicq_u32(result, low));
  return vbslq_f32(high, vdupq_n_f32(__builtin_inff()), above_low);
}

/// 1 + e^−x: what sigmoid_f32 and silu_f32 divide by.
inline float32x4_t one_and_exp_of_minus(float32x4_t x) {
  return vaddq_f32(vdupq_n_f32(1.0f), exp_lanes(vnegq_f32(x)));
}

inline float32x4_t sigmoid_lanes(float32x4_t x) {
  return vdivq_f32(vdupq_n_f32(1.0f), one_and_exp_of_minus(x));
}

inline float32x4_t silu_lanes(float32x4_t x) {
  return vdivq_f32(x, one_and_exp_of_minus(x));
}

/// softplus_f32 of base/elementary.h.
inline float32x4_t softplus_lanes(float32x4_t x) {
  using C = LogConstants;
  const float32x4_t y = exp_lanes(vnegq_f32(vabsq_f32(x)));
  const float32x4_t s = vdivq_f32(y, vaddq_f32(vdupq_n_f32(2.0f), y));
  const float32x4_t z = vmulq_f32(s, s);
  float32x4_t p = vfmaq_f32(vdupq_n_f32(C::kC9), vdupq_n_f32(C::kC11), z);
  p = vfmaq_f32(vdupq_n_f32(C::kC7), p, z);
  p = vfmaq_f32(vdupq_n_f32(C::kC5), p, z);
  p = vfmaq_f32(vdupq_n_f32(C::kC3), p, z);
  const float32x4_t twice = vaddq_f32(s, s);
  return vaddq_f32(larger(x, vdupq_n_f32(0.0f)), vfmaq_f32(twice, vmulq_f32(twice, z), p));
}

/// tanh_f32 of base/elementary.h.
inline float32x4_t tanh_lanes(float32x4_t x) {
  using C = TanhConstants;
  const float32x4_t one = vdupq_n_f32(1.0f);
  const float32x4_t z = vmulq_f32(x, x);
  float32x4_t p = vfmaq_f32(vdupq_n_f32(C::kC3), vdupq_n_f32(C::kC4), z);
  p = vfmaq_f32(vdupq_n_f32(C::kC2), p, z);
  p = vfmaq_f32(vdupq_n_f32(C::kC1), p, z);
  p = vfmaq_f32(vdupq_n_f32(C::kC0), p, z);
  const float32x4_t small = vfmaq_f32(x, vmulq_f32(x, z), p);
  const float32x4_t magnitude = vabsq_f32(x);
  const float32x4_t e = exp_lanes(vaddq_f32(magnitude, magnitude));
  const float32x4_t large = vsubq_f32(one, vdivq_f32(vdupq_n_f32(2.0f), vaddq_f32(one, e)));
  const float32x4_t signed_large = vbslq_f32(vdupq_n_u32(0x80000000u), x, large);
  return vbslq_f32(vcltq_f32(magnitude, vdupq_n_f32(C::kSmall)), small, signed_large);
}

}  // namespace
}  // namespace sluice::kernels::neon
