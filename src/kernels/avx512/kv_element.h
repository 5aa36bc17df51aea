// The element types of a KV cache, as the attention and the stores into it see them: 16 elements at
// a time, widened to float or rounded from it, and where the tiles lie. Private to the including
// file.
#pragma once

#include <cstdint>

#include "kernels/avx512/intrinsics.h"
#include "kernels/kernels.h"

namespace sluice::kernels::avx512 {
namespace {

struct KvF16 {
  using Element = uint16_t;
  static constexpr KvType kType = KvType::f16;
  static constexpr bool kScaled = false;
  static inline __m512 load(const uint16_t* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static inline void store(uint16_t* p, __m512 x) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                        _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
  }
};

struct KvF32 {
  using Element = float;
  static constexpr KvType kType = KvType::f32;
  static constexpr bool kScaled = false;
  static inline __m512 load(const float* p) { return _mm512_loadu_ps(p); }
  static inline void store(float* p, __m512 x) { _mm512_storeu_ps(p, x); }
};

struct KvQ8_0 {
  using Element = int8_t;
  static constexpr KvType kType = KvType::q8_0;
  static constexpr bool kScaled = true;
  static inline __m512 load(const int8_t* p) {
    const __m128i codes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(codes));
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
}  // namespace sluice::kernels::avx512
