// The values of the IQ4 formats (quant/iq4_values.h) as a table for byte shuffles. Private to the
// including file.
#pragma once

#include "kernels/avx2/intrinsics.h"
#include "quant/iq4_values.h"

namespace sluice::kernels::avx2 {
namespace {

inline __m128i iq4_values() {
  const auto at = [](size_t i) { return static_cast<char>(kIq4Values[i]); };
  return _mm_setr_epi8(at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7), at(8), at(9), at(10),
                       at(11), at(12), at(13), at(14), at(15));
}

}  // namespace
}  // namespace sluice::kernels::avx2
