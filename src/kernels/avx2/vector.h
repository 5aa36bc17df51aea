// The words that every file of this folder is written in: unaligned loads, sums across lanes, and
// stores of a few rows. All of it is internal to the file that includes it (anonymous namespace),
// because a function compiled with these flags must never become the program's shared copy.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace sluice::kernels::avx2 {
namespace {

inline __m128i load16(const void* bytes) {
  return _mm_loadu_si128(static_cast<const __m128i*>(bytes));
}

inline __m256i load32(const void* bytes) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(bytes));
}

inline void store32(void* bytes, __m256i v) {
  _mm256_storeu_si256(static_cast<__m256i*>(bytes), v);
}

template <class Integer>
inline Integer load_integer(const void* bytes) {
  Integer value;
  __builtin_memcpy(&value, bytes, sizeof value);
  return value;
}

/// The 8 bytes at `bytes`, four times.
inline __m256i broadcast8(const void* bytes) {
  return _mm256_set1_epi64x(load_integer<long long>(bytes));
}

/// Brings `bytes` from `begin` on into L2; into L1 they would push out what is being worked on.
/// Beyond the end of the memory that exists it does nothing.
inline void prefetch(const std::byte* begin, size_t bytes) {
  for (size_t i = 0; i < bytes; i += 64)
    _mm_prefetch(reinterpret_cast<const char*>(begin + i), _MM_HINT_T1);
}

inline __m256i low_half_bytes(__m256i bytes) {
  return _mm256_and_si256(bytes, _mm256_set1_epi8(15));
}

/// int32 sums of each two int16.
inline __m256i widen_pairs(__m256i pairs) {
  return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
}

/// Makes the compiler have `v` in a register here. It would do better without being told if GCC 12
/// did not turn chains of integer sums into trees that hold more products than there are registers
/// (Q4_K on Zen 4: 87 GMAC/s in place of 119), or load an operand anew for each use (F16: 34 in
/// place of 41).
template <class Vector>
inline void keep(Vector& v) {
  asm("" : "+x"(v));
}

/// In each half: a0 + a1, a2 + a3, b0 + b1, b2 + b3. This is vphaddd, which takes Zen 4 3.7 cycles
/// where these three instructions take one.
inline __m256i add_pairs(__m256i a, __m256i b) {
  const __m256 fa = _mm256_castsi256_ps(a);
  const __m256 fb = _mm256_castsi256_ps(b);
  return _mm256_add_epi32(_mm256_castps_si256(_mm256_shuffle_ps(fa, fb, 0x88)),
                          _mm256_castps_si256(_mm256_shuffle_ps(fa, fb, 0xdd)));
}

/// Lane i is the sum of the eight int32 of v[i].
inline __m256i sum_each(const __m256i* v) {
  const __m256i v0123 = add_pairs(add_pairs(v[0], v[1]), add_pairs(v[2], v[3]));
  const __m256i v4567 = add_pairs(add_pairs(v[4], v[5]), add_pairs(v[6], v[7]));
  return _mm256_add_epi32(_mm256_permute2x128_si256(v0123, v4567, 0x20),
                          _mm256_permute2x128_si256(v0123, v4567, 0x31));
}

/// The total of sum16, from its lanes 0–7 and 8–15: lane i += i + 8, then + 4, + 2, + 1.
inline float total16(__m256 low, __m256 high) {
  const __m256 eight = _mm256_add_ps(low, high);
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

/// All bits set in lanes below `count`.
inline __m256i first_lanes(size_t count) {
  const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)), lanes);
}

/// Eight floats of which only the first `count` exist; the others read as 0 and are not written.
inline __m256 load_some(const float* from, size_t count) {
  if (count >= 8) return _mm256_loadu_ps(from);
  return _mm256_maskload_ps(from, first_lanes(count));
}

inline void store_some(float* to, __m256 v, size_t count) {
  if (count >= 8) return _mm256_storeu_ps(to, v);
  _mm256_maskstore_ps(to, first_lanes(count), v);
}

}  // namespace
}  // namespace sluice::kernels::avx2
