// The element types of a KV cache, as the attention and the stores into it see them: where an
// element lies, what it stands for in a sum, and where its scale is. Private to the including file.
#pragma once

#include "base/half.h"
#include "kernels/kernels.h"

namespace sluice::kernels::ref {
namespace {

struct KvF16 {
  using Element = uint16_t;
  static constexpr KvType kType = KvType::f16;
  static float widen(uint16_t half) { return f16_to_f32(half); }
  static uint16_t narrow(float value) { return f32_to_f16(value); }
};

struct KvF32 {
  using Element = float;
  static constexpr KvType kType = KvType::f32;
  static float widen(float value) { return value; }
  static float narrow(float value) { return value; }
};

struct KvQ8_0 {
  using Element = int8_t;
  static constexpr KvType kType = KvType::q8_0;
  static float widen(int8_t code) { return static_cast<float>(code); }
};

/// Where the tile of a position begins, in elements. A row has head_dim elements in tiles of keys
/// and value_stride in tiles of values.
template <class Kv>
size_t tile_index(size_t row_elements, size_t position) {
  return position / kKeyTile *
         (kv_tile_bytes(Kv::kType, row_elements) / sizeof(typename Kv::Element));
}

template <class Kv>
size_t key_index(size_t head_dim, size_t position, size_t d) {
  return tile_index<Kv>(head_dim, position) + d * kKeyTile + position % kKeyTile;
}

template <class Kv>
size_t value_index(size_t value_stride, size_t position, size_t d) {
  return tile_index<Kv>(value_stride, position) + position % kKeyTile * value_stride + d;
}

/// Where the scale of a dimension lies in the keys or values, in binary16's from their beginning.
inline size_t scale_index(size_t row_elements, size_t position, size_t d) {
  const size_t codes_end = tile_index<KvQ8_0>(row_elements, position) + kKeyTile * row_elements;
  return codes_end / sizeof(uint16_t) + d / kKvBlock * kKeyTile + position % kKeyTile;
}

}  // namespace
}  // namespace sluice::kernels::ref
