// Signed weights beside signed activations, where vpmaddubsw wants one unsigned side: the
// magnitudes of the weights, whose sign goes to the activations. Magnitudes are up to 128 (a Q8_0
// file may hold −128), which an unsigned byte holds, and 128 · 127 · 2 < 2^15.
//
// One row against one token does this with vpsignb. In a panel an exclusive or does: with m = −1
// where w < 0, else 0,
//   w·x = |w|·((x ^ m) − m) = |w|·(x ^ m) + (w < 0 ? |w| : 0),
// and the last term belongs to the weights alone: it is summed while unpacking. Here, too, pair
// sums fit: 128 · −128 · 2 = −2^15.
//
// Tried for the panel with Q8_0 on Zen 4 (2026), where this way makes 75 · 10^9 multiply-adds per
// second: vpsignb, which shares its two ports with the products, 62; w + 128 as two half bytes,
// four of whose pair sums fit an int16, 56.
#pragma once

#include "kernels/avx2/panel.h"

namespace sluice::kernels::avx2 {
namespace {

/// int16 sums of each two w·x.
inline __m256i signed_pairs(__m256i w, __m256i x) {
  return _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w));
}

/// Signed weights of a panel's half A or B, and what the exclusive or leaves over.
struct SplitWeights {
  __m256i magnitudes;
  __m256i flips;      ///< all bits where w < 0
  __m256i negatives;  ///< int16 sums of each two |w| over w < 0
};

inline SplitWeights split_signs(__m256i w) {
  const __m256i flips = _mm256_cmpgt_epi8(_mm256_setzero_si256(), w);
  const __m256i magnitudes = _mm256_abs_epi8(w);
  const __m256i negative = _mm256_and_si256(magnitudes, flips);
  return {magnitudes, flips, _mm256_maddubs_epi16(negative, _mm256_set1_epi8(1))};
}

/// Four steps of eight columns: turns the weights in `codes` into magnitudes, and fills `flips`.
/// Returns int16 sums of the negatives' magnitudes, four lanes per row.
inline __m256i split_signs(uint8_t (*codes)[2][32], uint8_t (*flips)[2][32], size_t half) {
  __m256i negatives = _mm256_setzero_si256();
#pragma GCC unroll 4
  for (size_t i = 0; i < 4; ++i) {
    const SplitWeights split = split_signs(load32(codes[i][half]));
    store32(codes[i][half], split.magnitudes);
    store32(flips[i][half], split.flips);
    negatives = _mm256_add_epi16(negatives, split.negatives);
  }
  return negatives;
}

}  // namespace
}  // namespace sluice::kernels::avx2
