// How a position enters the KV cache.
#include "kernels/avx512/avx512.h"
#include "kernels/avx512/kv_element.h"
#include "kernels/avx512/lanes.h"

namespace sluice::kernels::avx512 {
namespace {

/// Keys lie across a tile, 16 positions beside each other: rounded 16 at a time, stored singly.
template <class Kv>
void store_key(const float* key, size_t head_dim, size_t position, void* keys) {
  using Element = typename Kv::Element;
  Element* column =
      static_cast<Element*>(keys) + position / kKeyTile * head_dim * kKeyTile + position % kKeyTile;
  for (size_t d = 0; d < head_dim; d += kLanes) {
    Element rounded[kLanes];
    Kv::store(rounded, _mm512_maskz_loadu_ps(lanes_left(d, head_dim), key + d));
    for (size_t i = 0; i < kLanes && d + i < head_dim; ++i) column[(d + i) * kKeyTile] = rounded[i];
  }
}

/// A row of values is padded with zeros to 16, which the mask of the load provides.
template <class Kv>
void store_value(const float* value, size_t head_dim, size_t position, size_t value_stride,
                 void* values) {
  auto* row = static_cast<typename Kv::Element*>(values) + position * value_stride;
  for (size_t d = 0; d < head_dim; d += kLanes)
    Kv::store(row + d, _mm512_maskz_loadu_ps(lanes_left(d, head_dim), value + d));
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

}  // namespace sluice::kernels::avx512
