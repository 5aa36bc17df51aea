// Loads, and the small steps with integers that several files of this folder take. Private to the
// including file, as is every header here: a function that is compiled with this ISA's flags must
// never become the copy that the whole program runs.
//
// Loads of bytes may lie at any address: ld1 of byte lanes needs no alignment.
#pragma once

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>

namespace sluice::kernels::neon {
namespace {

inline uint8x16_t load16(const void* bytes) {
  return vld1q_u8(static_cast<const uint8_t*>(bytes));
}

inline uint8x8_t load8(const void* bytes) {
  return vld1_u8(static_cast<const uint8_t*>(bytes));
}

template <class Integer>
inline Integer load_integer(const void* bytes) {
  Integer value;
  __builtin_memcpy(&value, bytes, sizeof value);
  return value;
}

inline int8x16_t as_signed(uint8x16_t bytes) {
  return vreinterpretq_s8_u8(bytes);
}

/// The low halves of the bytes (`half` 0), or the high ones.
inline uint8x16_t nibbles(uint8x16_t bytes, size_t half) {
  return half == 0 ? vandq_u8(bytes, vdupq_n_u8(15)) : vshrq_n_u8(bytes, 4);
}

/// The bits of each byte from `bit` on, moved to bit 4, above a nibble; `mask` keeps those wanted.
inline uint8x16_t bits_above_nibble(uint8x16_t bytes, size_t bit, uint8_t mask) {
  const uint8x16_t moved =
      bit < 4 ? bytes << static_cast<uint8_t>(4 - bit) : bytes >> static_cast<uint8_t>(bit - 4);
  return vandq_u8(moved, vdupq_n_u8(mask));
}

/// Row i becomes lane i.
inline void transpose(int32x4_t* rows) {
  const int32x4_t ac_low = vzip1q_s32(rows[0], rows[2]);
  const int32x4_t ac_high = vzip2q_s32(rows[0], rows[2]);
  const int32x4_t bd_low = vzip1q_s32(rows[1], rows[3]);
  const int32x4_t bd_high = vzip2q_s32(rows[1], rows[3]);
  rows[0] = vzip1q_s32(ac_low, bd_low);
  rows[1] = vzip2q_s32(ac_low, bd_low);
  rows[2] = vzip1q_s32(ac_high, bd_high);
  rows[3] = vzip2q_s32(ac_high, bd_high);
}

/// Lane i is the sum of the four int32 of v[i].
inline int32x4_t sum_each(const int32x4_t* v) {
  return vpaddq_s32(vpaddq_s32(v[0], v[1]), vpaddq_s32(v[2], v[3]));
}

}  // namespace
}  // namespace sluice::kernels::neon
