// The element types of a KV cache, as the attention and the stores into it see them: eight elements
// at a time, widened to float or rounded from it, and where the tiles lie. Private to the including
// file.
#pragma once

#include "kernels/avx2/intrinsics.h"
#include "kernels/kernels.h"

namespace sluice::kernels::avx2 {
namespace {

struct KvF16 {
  using Element = uint16_t;
  static constexpr KvType kType = KvType::f16;
  static constexpr bool kScaled = false;
  static __m256 load(const uint16_t* p) { return _mm256_cvtph_ps(load16(p)); }
  static void store(uint16_t* p, __m256 x) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
  }
};

struct KvF32 {
  using Element = float;
  static constexpr KvType kType = KvType::f32;
  static constexpr bool kScaled = false;
  static __m256 load(const float* p) { return _mm256_loadu_ps(p); }
  static void store(float* p, __m256 x) { _mm256_storeu_ps(p, x); }
};

struct KvQ8_0 {
  using Element = int8_t;
  static constexpr KvType kType = KvType::q8_0;
  static constexpr bool kScaled = true;
  static __m256 load(const int8_t* p) {
    const __m128i codes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(codes));
  }
};

/// From tile to tile, for rows of so many elements.
template <class Kv>
inline size_t tile_elements(size_t row_elements) {
  return kv_tile_bytes(Kv::kType, row_elements) / sizeof(typename Kv::Element);
}

/// Where in a tile of q8_0 the scales of a block of dimensions lie, one for each position.
inline size_t scales_offset(size_t row_elements, size_t block) {
  return kKeyTile * (row_elements + sizeof(uint16_t) * block);
}

}  // namespace
}  // namespace sluice::kernels::avx2
