// The two element types of a KV cache, as the attention and the stores into it see them: 16
// elements at a time, widened to float or rounded from it. Private to the including file.
#pragma once

#include <cstdint>

#include "kernels/avx512/intrinsics.h"

namespace sluice::kernels::avx512 {
namespace {

struct KvF16 {
  using Element = uint16_t;
  static inline __m512 load(const uint16_t* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static inline void store(uint16_t* p, __m512 x) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                        _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
  }
};

struct KvF32 {
  using Element = float;
  static inline __m512 load(const float* p) { return _mm512_loadu_ps(p); }
  static inline void store(float* p, __m512 x) { _mm512_storeu_ps(p, x); }
};

}  // namespace
}  // namespace sluice::kernels::avx512
