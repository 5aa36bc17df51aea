// How a position enters the KV cache.
#include "kernels/neon/kv_element.h"
#include "kernels/neon/lanes.h"
#include "kernels/neon/neon.h"

namespace sluice::kernels::neon {
namespace {

/// Keys lie across a tile, 16 positions beside each other: rounded four at a time, stored singly.
template <class Kv>
void store_key(const float* key, size_t head_dim, size_t position, void* keys) {
  using Element = typename Kv::Element;
  Element* column = static_cast<Element*>(keys) +
                    position / kKeyTile * tile_elements<Kv>(head_dim) + position % kKeyTile;
  for (size_t d = 0; d < head_dim; d += kLanes) {
    Element rounded[kLanes];
    Kv::store(rounded, load_some(key + d, head_dim - d));
    for (size_t i = 0; i < kLanes && d + i < head_dim; ++i) column[(d + i) * kKeyTile] = rounded[i];
  }
}

/// A row of values is padded with zeros to a multiple of 16.
template <class Kv>
void store_value(const float* value, size_t head_dim, size_t position, size_t value_stride,
                 void* values) {
  auto* row = static_cast<typename Kv::Element*>(values) + position * value_stride;
  for (size_t d = 0; d < value_stride; d += kLanes)
    Kv::store(row + d, load_some(value + d, d < head_dim ? head_dim - d : 0));
}

/// The first dimensions of x, at most kKvBlock of them, as int8; those that lack count as 0.
struct QuantizedBlock {
  QuantizedBlock(const float* x, size_t remaining)
      : count(remaining < kKvBlock ? remaining : kKvBlock) {
    float padded[kKvBlock] = {};
    __builtin_memcpy(padded, x, count * sizeof(float));
    float wide_scale;
    int16_t sums[kKvBlock / 16];
    quantize_q8_32(padded, kKvBlock, {codes, &wide_scale, sums});
    // Exact: it has been rounded.
    scale = vget_lane_u16(vreinterpret_u16_f16(vcvt_f16_f32(vdupq_n_f32(wide_scale))), 0);
  }

  size_t count;
  int8_t codes[kKvBlock];
  uint16_t scale;
};

inline int8_t* tile_of(void* tiles, size_t row_elements, size_t position) {
  return static_cast<int8_t*>(tiles) + position / kKeyTile * tile_elements<KvQ8_0>(row_elements);
}

inline void store_scale(uint16_t scale, int8_t* tile, size_t row_elements, size_t d,
                        size_t position) {
  int8_t* scales = tile + scales_offset(row_elements, d / kKvBlock);
  __builtin_memcpy(scales + position % kKeyTile * sizeof scale, &scale, sizeof scale);
}

}  // namespace

void store_key_f16(const float* key, size_t head_dim, size_t position, void* keys) {
  store_key<KvF16>(key, head_dim, position, keys);
}
void store_key_f32(const float* key, size_t head_dim, size_t position, void* keys) {
  store_key<KvF32>(key, head_dim, position, keys);
}
void store_key_q8_0(const float* key, size_t head_dim, size_t position, void* keys) {
  int8_t* tile = tile_of(keys, head_dim, position);
  for (size_t d = 0; d < head_dim; d += kKvBlock) {
    const QuantizedBlock block(key + d, head_dim - d);
    int8_t* column = tile + d * kKeyTile + position % kKeyTile;
    for (size_t i = 0; i < block.count; ++i) column[i * kKeyTile] = block.codes[i];
    store_scale(block.scale, tile, head_dim, d, position);
  }
}
void store_value_f16(const float* value, size_t head_dim, size_t position, size_t value_stride,
                     void* values) {
  store_value<KvF16>(value, head_dim, position, value_stride, values);
}
void store_value_f32(const float* value, size_t head_dim, size_t position, size_t value_stride,
                     void* values) {
  store_value<KvF32>(value, head_dim, position, value_stride, values);
}
void store_value_q8_0(const float* value, size_t head_dim, size_t position, size_t value_stride,
                      void* values) {
  int8_t* tile = tile_of(values, value_stride, position);
  int8_t* row = tile + position % kKeyTile * value_stride;
  __builtin_memset(row, 0, value_stride);
  for (size_t d = 0; d < head_dim; d += kKvBlock) {
    const QuantizedBlock block(value + d, head_dim - d);
    __builtin_memcpy(row + d, block.codes, block.count);
    store_scale(block.scale, tile, value_stride, d, position);
  }
}

}  // namespace sluice::kernels::neon
