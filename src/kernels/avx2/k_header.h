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

template <class Block>
struct KHeader {
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
