// Taking codes of a few bits out of the bytes that hold them.
//
// Private to the file that includes it.
#pragma once

#include <cstddef>

#include "kernels/avx512/intrinsics.h"

namespace sluice::kernels::avx512 {
namespace {

/// A matrix over bits, for gf2p8affine: `count` bits of each byte from `from` on come to lie at
/// `to` and the following, and the others are 0. One instruction where a shift and an and are two;
/// but on Zen 4 it shares two ports with vpdpbusd and multiplications, and a shift does not.
constexpr long long bit_matrix(size_t count, size_t from, size_t to) {
  unsigned long long matrix = 0;  // byte 7 − i has the bits that make up bit i
  for (size_t i = 0; i < count; ++i) matrix |= 1ull << (8 * (7 - to - i) + from + i);
  return static_cast<long long>(matrix);
}

inline __m512i high_half_bytes(__m512i bytes) {
  return _mm512_gf2p8affine_epi64_epi8(bytes, _mm512_set1_epi64(bit_matrix(4, 4, 0)), 0);
}

/// Bits of each byte, beginning with another one in the lower half of the register than in the
/// upper, moved to bit kTo.
template <size_t kCount, size_t kTo>
inline __m512i move_bits(__m512i bytes, size_t from_in_lower, size_t from_in_upper) {
  const long long lower = bit_matrix(kCount, from_in_lower, kTo);
  const long long upper = bit_matrix(kCount, from_in_upper, kTo);
  const __m512i matrix = _mm512_setr_epi64(lower, lower, lower, lower, upper, upper, upper, upper);
  return _mm512_gf2p8affine_epi64_epi8(bytes, matrix, 0);
}

/// Those bits of each byte, from bit 0 on.
template <size_t kCount>
inline __m512i take_bits(__m512i bytes, size_t from) {
  return _mm512_gf2p8affine_epi64_epi8(bytes, _mm512_set1_epi64(bit_matrix(kCount, from, 0)), 0);
}

/// The lower half of each byte, with other bits set above it.
inline __m512i low_half_bytes_or(__m512i bytes, __m512i upper) {
  return _mm512_ternarylogic_epi64(bytes, _mm512_set1_epi8(15), upper, 0xea);  // (a & b) | c
}

}  // namespace
}  // namespace sluice::kernels::avx512
