// The values of the IQ4 formats (quant/iq4_values.h) as unsigned bytes, in a table for shuffles.
// Private to the including file.
#pragma once

#include "kernels/avx512/intrinsics.h"
#include "quant/iq4_values.h"

namespace sluice::kernels::avx512 {
namespace {

constexpr int kIq4Offset = 128;

/// What stands for each code: its value plus kIq4Offset. Element by element, because to load the
/// array would be to define it here for the whole program.
inline __m128i iq4_codes() {
  constexpr const auto& v = kIq4Values;
  const __m128i values = _mm_setr_epi8(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8], v[9],
                                       v[10], v[11], v[12], v[13], v[14], v[15]);
  return _mm_xor_si128(values, _mm_set1_epi8(-kIq4Offset));  // the sign bit
}

/// The same by the low half of each byte. The shuffle looks at six bits; the table is there four
/// times.
inline __m512i iq4_codes(__m512i bytes) {
  return _mm512_permutexvar_epi8(bytes, _mm512_broadcast_i32x4(iq4_codes()));
}

}  // namespace
}  // namespace sluice::kernels::avx512
