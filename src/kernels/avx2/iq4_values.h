// The values of the IQ4 formats (quant/iq4_values.h) as a table for byte shuffles. Private to the
// including file.
#pragma once

#include "kernels/avx2/intrinsics.h"
#include "quant/iq4_values.h"

namespace sluice::kernels::avx2 {
namespace {

/// Element by element, because to load the array would be to define it here for the whole program.
inline __m128i iq4_values() {
  constexpr const auto& v = kIq4Values;
  return _mm_setr_epi8(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8], v[9], v[10], v[11],
                       v[12], v[13], v[14], v[15]);
}

/// REQUIRES: codes are below 16.
inline __m256i iq4_values(__m256i codes) {
  return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(iq4_values()), codes);
}

}  // namespace
}  // namespace sluice::kernels::avx2
