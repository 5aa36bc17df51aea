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
  Element* column =
      static_cast<Element*>(keys) + position / kKeyTile * kKeyTile * head_dim + position % kKeyTile;
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

}  // namespace

void store_key_f16(const float* key, size_t head_dim, size_t position, void* keys) {
  store_key<KvF16>(key, head_dim, position, keys);
}
void store_key_f32(const float* key, size_t head_dim, size_t position, void* keys) {
  store_key<KvF32>(key, head_dim, position, keys);
}
void store_value_f16(const float* value, size_t head_dim, size_t position, size_t value_stride,
                     void* values) {
  store_value<KvF16>(value, head_dim, position, value_stride, values);
}
void store_value_f32(const float* value, size_t head_dim, size_t position, size_t value_stride,
                     void* values) {
  store_value<KvF32>(value, head_dim, position, value_stride, values);
}

}  // namespace sluice::kernels::neon
