// The E2M1 codes of MXFP4 and NVFP4 as unsigned bytes. Private to the including file.
#pragma once

#include "kernels/avx2/intrinsics.h"
#include "quant/fp4.h"

namespace sluice::kernels::avx2 {
namespace {

constexpr int kFp4Offset = 12;

/// What stands for each code: its value, doubled, plus kFp4Offset.
inline __m128i fp4_codes() {
  const auto at = [](size_t i) { return static_cast<char>(kTwiceE2m1[i] + kFp4Offset); };
  return _mm_setr_epi8(at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7), at(8), at(9), at(10),
                       at(11), at(12), at(13), at(14), at(15));
}

}  // namespace
}  // namespace sluice::kernels::avx2
