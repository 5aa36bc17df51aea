// How a position enters the KV cache.
#include "kernels/ref/kv_element.h"
#include "kernels/ref/ref.h"
#include "quant/activation.h"

namespace sluice::kernels::ref {
namespace {

template <class Kv>
void store_key(const float* key, size_t head_dim, size_t position, void* keys) {
  auto* stored = static_cast<typename Kv::Element*>(keys);
  for (size_t d = 0; d < head_dim; ++d)
    stored[key_index<Kv>(head_dim, position, d)] = Kv::narrow(key[d]);
}

template <class Kv>
void store_value(const float* value, size_t head_dim, size_t position, size_t value_stride,
                 void* values) {
  auto* stored = static_cast<typename Kv::Element*>(values);
  for (size_t d = 0; d < value_stride; ++d)
    stored[value_index<Kv>(value_stride, position, d)] = d < head_dim ? Kv::narrow(value[d]) : 0;
}

/// Up to kKvBlock dimensions as int8.
struct QuantizedBlock {
  QuantizedBlock(const float* x, size_t count) {
    float padded[kKvBlock] = {};
    for (size_t i = 0; i < count && i < kKvBlock; ++i) padded[i] = x[i];
    float wide_scale = 0.0f;
    int16_t sums[kKvBlock / 16];
    quantize_q8_32(padded, kKvBlock, {codes, &wide_scale, sums});
    scale = f32_to_f16(wide_scale);  // exact: it has been rounded
  }

  int8_t codes[kKvBlock];
  uint16_t scale;
};
static_assert(kKvBlock == kSmallBlock);

}  // namespace

void store_key_f16(const float* key, size_t head_dim, size_t position, void* keys) {
  store_key<KvF16>(key, head_dim, position, keys);
}
void store_key_f32(const float* key, size_t head_dim, size_t position, void* keys) {
  store_key<KvF32>(key, head_dim, position, keys);
}
void store_key_q8_0(const float* key, size_t head_dim, size_t position, void* keys) {
  auto* codes = static_cast<int8_t*>(keys);
  auto* scales = static_cast<uint16_t*>(keys);
  for (size_t first = 0; first < head_dim; first += kKvBlock) {
    const QuantizedBlock block(key + first, head_dim - first);
    scales[scale_index(head_dim, position, first)] = block.scale;
    for (size_t i = 0; i < kKvBlock && first + i < head_dim; ++i)
      codes[key_index<KvQ8_0>(head_dim, position, first + i)] = block.codes[i];
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
  auto* codes = static_cast<int8_t*>(values);
  auto* scales = static_cast<uint16_t*>(values);
  for (size_t first = 0; first < head_dim; first += kKvBlock) {
    const QuantizedBlock block(value + first, head_dim - first);
    scales[scale_index(value_stride, position, first)] = block.scale;
    for (size_t i = 0; i < kKvBlock && first + i < value_stride; ++i)
      codes[value_index<KvQ8_0>(value_stride, position, first + i)] = block.codes[i];
  }
}

}  // namespace sluice::kernels::ref
