// Activations to int8; quant/activation.h is the definition.
#include "kernels/avx512/avx512.h"
#include "kernels/avx512/intrinsics.h"

namespace sluice::kernels::avx512 {
namespace {

/// |x| as integers: they order like the magnitudes, with infinity and then NaN above them all.
inline __m512i magnitude_bits(__m512 x) {
  return _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(0x7fffffff));
}

/// The first value whose magnitude is the given one. REQUIRES: there is one.
inline float first_of_magnitude(const float* x, uint32_t bits) {
  const __m512i wanted = _mm512_set1_epi32(static_cast<int>(bits));
  for (;; x += 16) {
    const __mmask16 equal = _mm512_cmpeq_epi32_mask(magnitude_bits(_mm512_loadu_ps(x)), wanted);
    if (equal != 0) return x[__builtin_ctz(equal)];
  }
}

/// Quantises 16 values and returns their sum. What is not finite after scaling becomes 0.
inline int16_t quantize_16(const float* x, __m512 inverse, int8_t* q) {
  const __m512 product = _mm512_mul_ps(_mm512_loadu_ps(x), inverse);
  const __mmask16 finite =
      _mm512_cmplt_epu32_mask(magnitude_bits(product), _mm512_set1_epi32(0x7f800000));
  const __m512i rounded = _mm512_maskz_cvtps_epi32(finite, product);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(q), _mm512_cvtepi32_epi8(rounded));
  return static_cast<int16_t>(_mm512_reduce_add_epi32(rounded));
}

}  // namespace

void quantize_q8_256(const float* x, size_t cols, const QuantizedRow& row) {
  for (size_t block = 0; block < cols / kSuperBlock; ++block) {
    const float* values = x + block * kSuperBlock;
    __m512i maxima = _mm512_setzero_si512();
    for (size_t i = 0; i < kSuperBlock; i += 16)
      maxima = _mm512_max_epu32(maxima, magnitude_bits(_mm512_loadu_ps(values + i)));
    const uint32_t largest = _mm512_reduce_max_epu32(maxima);
    const float inverse = largest == 0 ? 0.0f : -127.0f / first_of_magnitude(values, largest);
    for (size_t i = 0; i < kSuperBlock; i += 16)
      row.sum16[(block * kSuperBlock + i) / 16] =
          quantize_16(values + i, _mm512_set1_ps(inverse), row.q + block * kSuperBlock + i);
    row.scale[block] = largest == 0 ? 0.0f : 1.0f / inverse;
  }
}

void quantize_q8_32(const float* x, size_t cols, const QuantizedRow& row) {
  for (size_t block = 0; block < cols / kSmallBlock; ++block) {
    const float* values = x + block * kSmallBlock;
    const __m512i low = magnitude_bits(_mm512_loadu_ps(values));
    const __m512i high = magnitude_bits(_mm512_loadu_ps(values + 16));
    const auto largest = static_cast<int>(_mm512_reduce_max_epu32(_mm512_max_epu32(low, high)));
    const float d = _mm_cvtss_f32(_mm_castsi128_ps(_mm_cvtsi32_si128(largest))) / 127.0f;
    const __m512 inverse = _mm512_set1_ps(d != 0.0f ? 1.0f / d : 0.0f);
    for (size_t i = 0; i < kSmallBlock; i += 16)
      row.sum16[(block * kSmallBlock + i) / 16] =
          quantize_16(values + i, inverse, row.q + block * kSmallBlock + i);
    const __m128i half = _mm_cvtps_ph(_mm_set_ss(d), _MM_FROUND_TO_NEAREST_INT);
    row.scale[block] = _mm_cvtss_f32(_mm_cvtph_ps(half));
  }
}

}  // namespace sluice::kernels::avx512
