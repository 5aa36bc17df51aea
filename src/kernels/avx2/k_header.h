// The first 16 bytes of a Q4_K or Q5_K block: d, dmin and eight scales and mins of six bits.
#pragma once

#include "kernels/avx2/super_block.h"

namespace sluice::kernels::avx2 {
namespace {

/// Bytes 0–7 are the scales, 8–15 the mins. quant/blocks.h describes the packing (unpack_k_scales);
/// here four sub-blocks are done at once in a 32-bit word.
inline __m128i scales_and_mins(const std::byte* packed) {
  const auto with_scales = load_integer<uint32_t>(packed);
  const auto with_mins = load_integer<uint32_t>(packed + 4);
  const auto low_halves = load_integer<uint32_t>(packed + 8);
  const uint32_t low_scales = with_scales & 0x3f3f3f3fu;
  const uint32_t low_mins = with_mins & 0x3f3f3f3fu;
  const uint32_t high_scales = (low_halves & 0x0f0f0f0fu) | ((with_scales >> 2) & 0x30303030u);
  const uint32_t high_mins = ((low_halves >> 4) & 0x0f0f0f0fu) | ((with_mins >> 2) & 0x30303030u);
  return _mm_setr_epi32(static_cast<int>(low_scales), static_cast<int>(high_scales),
                        static_cast<int>(low_mins), static_cast<int>(high_mins));
}

/// The headers of eight rows' blocks, which are dealt with together: row by row, scales, mins and
/// the two floats cost one token as many instructions as its products.
struct EightHeaders {
  alignas(32) int32_t scale_pairs[8][8];  ///< [sub-block][row], the int16 twice
  __m256i min_pairs[4];                   ///< lanes are rows: mins of sub-blocks 2i and 2i + 1
  __m256 d;
  __m256 dmin;

  explicit EightHeaders(const std::byte* const* blocks) {
    __m256i words[4];  // lanes are rows: d and dmin; three words of what unpack_k_scales describes
    load_words(blocks, words);
    const auto masked = [](__m256i bytes, char mask) {
      return _mm256_and_si256(bytes, _mm256_set1_epi8(mask));
    };
    const auto high = [&](__m256i low_halves, __m256i with_twos) {
      return _mm256_or_si256(masked(low_halves, 0x0f),
                             masked(_mm256_srli_epi32(with_twos, 2), 0x30));
    };
    spread_scales(masked(words[1], 0x3f), scale_pairs);
    spread_scales(high(words[3], words[1]), scale_pairs + 4);
    spread_mins(masked(words[2], 0x3f), min_pairs);
    spread_mins(high(_mm256_srli_epi32(words[3], 4), words[2]), min_pairs + 2);
    d = halves_to_floats(_mm256_and_si256(words[0], _mm256_set1_epi32(0xffff)));
    dmin = halves_to_floats(_mm256_srli_epi32(words[0], 16));
  }

  /// Σ min · Σ x of each row.
  __m256i sum_mins(const int16_t* sum16) const {
    const __m256i sum32 = _mm256_madd_epi16(load32(sum16), _mm256_set1_epi16(1));
    alignas(32) int32_t pairs[8];  // the sums of sub-blocks 0 1, 2 3, … in 0, 1, 4, 5
    store32(pairs, _mm256_packs_epi32(sum32, sum32));
    const auto product = [&](size_t i, size_t at) {
      return _mm256_madd_epi16(min_pairs[i], _mm256_set1_epi32(pairs[at]));
    };
    return _mm256_add_epi32(_mm256_add_epi32(product(0, 0), product(1, 1)),
                            _mm256_add_epi32(product(2, 4), product(3, 5)));
  }

 private:
  /// Word i of the first 16 bytes of each row, in words[i].
  static void load_words(const std::byte* const* blocks, __m256i* words) {
    __m256i rows[4];
    for (size_t j = 0; j < 4; ++j) rows[j] = load16_each(blocks[j], blocks[j + 4]);
    const __m256i low01 = _mm256_unpacklo_epi32(rows[0], rows[1]);
    const __m256i low23 = _mm256_unpacklo_epi32(rows[2], rows[3]);
    const __m256i high01 = _mm256_unpackhi_epi32(rows[0], rows[1]);
    const __m256i high23 = _mm256_unpackhi_epi32(rows[2], rows[3]);
    words[0] = _mm256_unpacklo_epi64(low01, low23);
    words[1] = _mm256_unpackhi_epi64(low01, low23);
    words[2] = _mm256_unpacklo_epi64(high01, high23);
    words[3] = _mm256_unpackhi_epi64(high01, high23);
  }

  /// A byte shuffle that gives bytes `first` and `second` of each word as two int16.
  static __m256i byte_pairs(int first, int second) {
    const __m128i words = _mm_setr_epi32(0, 0x00040004, 0x00080008, 0x000c000c);
    const __m128i bytes = _mm_set1_epi32(static_cast<int>(0x80008000u) | second << 16 | first);
    return _mm256_broadcastsi128_si256(_mm_add_epi32(words, bytes));
  }

  static void spread_scales(__m256i four, int32_t (*pairs)[8]) {
    for (int s = 0; s < 4; ++s) store32(pairs[s], _mm256_shuffle_epi8(four, byte_pairs(s, s)));
  }

  static void spread_mins(__m256i four, __m256i* pairs) {
    for (int i = 0; i < 2; ++i) pairs[i] = _mm256_shuffle_epi8(four, byte_pairs(2 * i, 2 * i + 1));
  }

  /// The binary16 in the low half of each word.
  static __m256 halves_to_floats(__m256i words) {
    const __m256i packed = _mm256_packus_epi32(words, words);
    return _mm256_cvtph_ps(_mm256_castsi256_si128(_mm256_permute4x64_epi64(packed, 0x08)));
  }
};

template <class Block>
struct KHeader {
  using Headers = EightHeaders;
  static_assert(offsetof(Block, d) == 0 && offsetof(Block, scales) == 4);

  static constexpr size_t kBlockBytes = sizeof(Block);
  static constexpr size_t kOffsetD = offsetof(Block, d);
  static constexpr size_t kSubBlock = 32;
  static constexpr bool kSigned = false;
  static constexpr bool kTwoSubBlocks = false;
  static constexpr bool kHasMin = true;

  static __m256i scales(const std::byte* block) {
    const __m128i bytes = scales_and_mins(block + offsetof(Block, scales));
    return _mm256_broadcastsi128_si256(_mm_cvtepu8_epi16(bytes));
  }

  static __m256i sum_weights(const std::byte* block) {
    const __m128i bytes = scales_and_mins(block + offsetof(Block, scales));
    return _mm256_cvtepu8_epi16(_mm_unpackhi_epi8(bytes, bytes));
  }
};

}  // namespace
}  // namespace sluice::kernels::avx2
