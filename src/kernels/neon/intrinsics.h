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

/// The low halves of eight bytes, then the high ones.
inline uint8x16_t nibbles_of_eight(uint8x8_t bytes) {
  return vcombine_u8(vand_u8(bytes, vdup_n_u8(15)), vshr_n_u8(bytes, 4));
}

/// Moves the bits of each byte from bit `from` to bit `to`; `mask` keeps those wanted.
inline uint8x16_t move_bits(uint8x16_t bytes, size_t from, size_t to, uint8_t mask) {
  const uint8x16_t moved = from < to ? bytes << static_cast<uint8_t>(to - from)
                                     : bytes >> static_cast<uint8_t>(from - to);
  return vandq_u8(moved, vdupq_n_u8(mask));
}

/// The codes 0 … 3 of the columns from 16·g on, which lie as unpack_two_bits (quant/blocks.h) says.
inline uint8x16_t two_bits(const std::byte* qs, size_t g) {
  return move_bits(load16(qs + 32 * (g / 8) + 16 * (g % 2)), 2 * (g / 2 % 4), 0, 3);
}

/// All ones in lane i if bit i % 8 of byte i / 8 is set.
inline uint8x16_t lanes_of_bits(const void* two_bytes) {
  const auto bytes = load_integer<uint16_t>(two_bytes);
  const uint8x8_t low = vdup_n_u8(static_cast<uint8_t>(bytes));
  const uint8x8_t high = vdup_n_u8(static_cast<uint8_t>(bytes >> 8));
  const uint8x16_t bit = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201));
  return vtstq_u8(vcombine_u8(low, high), bit);
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
