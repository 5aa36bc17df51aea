// Loads, and the small steps with integers that several files of this folder take. Private to the
// including file, as is every header here: a function that is compiled with this ISA's flags must
// never become the copy that the whole program runs.
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

inline __m256i low_half_bytes(__m256i bytes) {
  return _mm256_and_si256(bytes, _mm256_set1_epi8(15));
}

/// int32 sums of each two int16.
inline __m256i widen_pairs(__m256i pairs) {
  return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
}

/// Makes the compiler have `v` in a register here. Else g++ 12 turns a chain of integer sums into a
/// tree that holds more products than there are registers (Q4_K on Zen 4, 2026: 87 · 10^9
/// multiply-adds per second in place of 119), or loads an operand anew for each of its uses (F16:
/// 34 in place of 41).
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

/// A cursor that walks ahead through memory and brings what it passes into L2. (Into L1 it would
/// push out what is being worked on, and took F16 rows from RAM from 19 GB/s to 12 on one core of
/// an EPYC Genoa, 2026.) It stops at the end: what follows is another thread's.
class Prefetch {
 public:
  Prefetch(const std::byte* first, size_t bytes) : next_(first), end_(first + bytes) {}

  /// Everything before `goal` is to be on its way.
  void reach(const std::byte* goal) {
    const std::byte* stop = goal < end_ ? goal : end_;
    for (; next_ < stop; next_ += 64)
      _mm_prefetch(reinterpret_cast<const char*>(next_), _MM_HINT_T1);
  }

 private:
  const std::byte* next_;
  const std::byte* end_;
};

}  // namespace
}  // namespace sluice::kernels::avx2
