// The IQ4 formats' table as a shuffle: codes of four bits to weights, unsigned as panel.h wants
// them.
#pragma once

#include "kernels/avx512/intrinsics.h"
#include "quant/iq4_values.h"

namespace sluice::kernels::avx512 {
namespace {

constexpr int kIq4Offset = 128;  ///< how much higher iq4_values are than the weights

/// By the low half of each byte. A shuffle looks at six bits; the table is there four times.
inline __m512i iq4_values(__m512i codes) {
  // Element by element, because to load the array would be to define it here for the whole program.
  constexpr const auto& v = kIq4Values;
  const __m128i table = _mm_setr_epi8(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8], v[9],
                                      v[10], v[11], v[12], v[13], v[14], v[15]);
  const __m128i raised = _mm_xor_si128(table, _mm_set1_epi8(-kIq4Offset));  // the sign bit
  return _mm512_permutexvar_epi8(codes, _mm512_broadcast_i32x4(raised));
}

}  // namespace
}  // namespace sluice::kernels::avx512
