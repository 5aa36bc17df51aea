// The two element types of a KV cache, as the attention and the stores into it see them: eight
// elements at a time, widened to float or rounded from it. Private to the including file.
#pragma once

#include "kernels/avx2/intrinsics.h"

namespace sluice::kernels::avx2 {
namespace {

struct KvF16 {
  using Element = uint16_t;
  static __m256 load(const uint16_t* p) { return _mm256_cvtph_ps(load16(p)); }
  static void store(uint16_t* p, __m256 x) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
  }
};

struct KvF32 {
  using Element = float;
  static __m256 load(const float* p) { return _mm256_loadu_ps(p); }
  static void store(float* p, __m256 x) { _mm256_storeu_ps(p, x); }
};

}  // namespace
}  // namespace sluice::kernels::avx2
