// Activations to int8, as quant/activation.h defines it. Magnitudes compare as integers (the bits
// of |x|), so that infinity and NaN are ordered as in the definition.
#include "kernels/avx2/avx2.h"
#include "kernels/avx2/intrinsics.h"
#include "quant/activation.h"

namespace sluice::kernels::avx2 {
namespace {

inline __m256i magnitude_bits(const float* x) {
  return _mm256_and_si256(load32(x), _mm256_set1_epi32(0x7fffffff));
}

inline __m256i largest_magnitudes(const float* x, size_t count) {
  __m256i largest = _mm256_setzero_si256();
  for (size_t i = 0; i < count; i += 8) largest = _mm256_max_epi32(largest, magnitude_bits(x + i));
  return largest;
}

inline int largest_lane(__m256i v) {
  const __m128i four = _mm_max_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  const __m128i two = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0x4e));
  return _mm_cvtsi128_si32(_mm_max_epi32(two, _mm_shuffle_epi32(two, 0xb1)));
}

/// The first of `count` values that has the largest magnitude.
inline float largest_value(const float* x, size_t count) {
  const __m256i bits = _mm256_set1_epi32(largest_lane(largest_magnitudes(x, count)));
  for (size_t i = 0; i < count; i += 8) {
    const __m256i equal = _mm256_cmpeq_epi32(magnitude_bits(x + i), bits);
    const int lanes = _mm256_movemask_ps(_mm256_castsi256_ps(equal));
    if (lanes != 0) return x[i + static_cast<size_t>(__builtin_ctz(static_cast<unsigned>(lanes)))];
  }
  return 0.0f;
}

/// round_half_even(x · inverse) of eight values; 0 where that is not finite.
inline __m256i round_products(const float* x, __m256 inverse) {
  const __m256i q = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x), inverse));
  const __m256i not_finite = _mm256_cmpeq_epi32(q, _mm256_set1_epi32(INT32_MIN));
  return _mm256_andnot_si256(not_finite, q);
}

/// Sums of 16 bytes: with 128 added they are unsigned, and vpsadbw adds up eight of those.
inline void store_sums(__m256i q, int16_t* sum16) {
  const __m256i above = _mm256_xor_si256(q, _mm256_set1_epi8(-128));
  const __m256i eights = _mm256_sad_epu8(above, _mm256_setzero_si256());
  const __m256i sums = _mm256_sub_epi32(_mm256_add_epi32(eights, _mm256_bsrli_epi128(eights, 8)),
                                        _mm256_set1_epi32(16 * 128));
  sum16[0] = static_cast<int16_t>(_mm256_extract_epi16(sums, 0));
  sum16[1] = static_cast<int16_t>(_mm256_extract_epi16(sums, 8));
}

inline float round_to_f16(float x) {
  const __m128i half = _mm_cvtps_ph(_mm_set_ss(x), _MM_FROUND_TO_NEAREST_INT);
  return _mm_cvtss_f32(_mm_cvtph_ps(half));
}

inline void quantize_block(const float* x, size_t count, float inverse, int8_t* q, int16_t* sum16) {
  const __m256 factor = _mm256_set1_ps(inverse);
  for (size_t i = 0; i < count; i += 32) {
    const __m256i ab =
        _mm256_packs_epi32(round_products(x + i, factor), round_products(x + i + 8, factor));
    const __m256i cd =
        _mm256_packs_epi32(round_products(x + i + 16, factor), round_products(x + i + 24, factor));
    // Packing works within halves: fours of a, b, c, d from each half in turn.
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    const __m256i packed = _mm256_permutevar8x32_epi32(_mm256_packs_epi16(ab, cd), order);
    store32(q + i, packed);
    store_sums(packed, sum16 + i / 16);
  }
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
    const int largest = largest_lane(largest_magnitudes(x + first, kSmallBlock));
    const float d = _mm_cvtss_f32(_mm_castsi128_ps(_mm_cvtsi32_si128(largest))) / 127.0f;
    const float inverse = d != 0.0f ? 1.0f / d : 0.0f;
    quantize_block(x + first, kSmallBlock, inverse, row.q + first, row.sum16 + first / 16);
    row.scale[first / kSmallBlock] = round_to_f16(d);
  }
}

}  // namespace sluice::kernels::avx2
