// The IQ4 formats' table as a shuffle: codes of four bits to signed weights.
#pragma once

#include "kernels/avx2/intrinsics.h"
#include "quant/iq4_values.h"

namespace sluice::kernels::avx2 {
namespace {

/// Element by element, because to load the array would be to define it here for the whole program.
/// REQUIRES: codes are below 16.
inline __m256i iq4_values(__m256i codes) {
  constexpr const auto& v = kIq4Values;
  const __m128i table = _mm_setr_epi8(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8], v[9],
                                      v[10], v[11], v[12], v[13], v[14], v[15]);
  return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(table), codes);
}

}  // namespace
}  // namespace sluice::kernels::avx2
