// Attention by blocks of keys with an online softmax, and the two ways a position enters the KV
// cache.
#include <cmath>
#include <limits>

#include "base/elementary.h"
#include "base/half.h"
#include "kernels/ref/ref.h"
#include "kernels/ref/sum16.h"

namespace sluice::kernels::ref {
namespace {

float widen(uint16_t half) {
  return f16_to_f32(half);
}
float widen(float value) {
  return value;
}
void narrow(float value, uint16_t& half) {
  half = f32_to_f16(value);
}
void narrow(float value, float& same) {
  same = value;
}

size_t key_index(size_t position, size_t head_dim, size_t d) {
  return (position / kKeyTile * head_dim + d) * kKeyTile + position % kKeyTile;
}

/// The keys [first, first + count) of one block, at most kAttentionBlock.
struct KeyRange {
  size_t first;
  size_t count;
};

template <class Element>
void score_block(const AttentionArgs& args, const float* query, KeyRange range, float* scores) {
  const auto* keys = static_cast<const Element*>(args.keys);
  for (size_t j = 0; j < range.count; ++j) {
    float acc = 0.0f;
    for (size_t d = 0; d < args.head_dim; ++d)
      acc = std::fma(query[d], widen(keys[key_index(range.first + j, args.head_dim, d)]), acc);
    scores[j] = acc * args.scale;
  }
}

/// One query that sees the keys 0 … key_count − 1. `out` is o of the definition all along.
template <class Element>
void attend(const AttentionArgs& args, const float* query, size_t key_count, float* out) {
  const auto* values = static_cast<const Element*>(args.values);
  float max = -std::numeric_limits<float>::infinity();
  float sum = 0.0f;
  for (size_t d = 0; d < args.head_dim; ++d) out[d] = 0.0f;
  for (size_t first = 0; first < key_count; first += kAttentionBlock) {
    const size_t left = key_count - first;
    const KeyRange range = {first, left < kAttentionBlock ? left : kAttentionBlock};
    float p[kAttentionBlock];
    score_block<Element>(args, query, range, p);
    float new_max = max;
    for (size_t j = 0; j < range.count; ++j) new_max = p[j] > new_max ? p[j] : new_max;
    const float correction = exp_f32(max - new_max);
    Sum16 block_sum;
    for (size_t j = 0; j < range.count; ++j) {
      p[j] = exp_f32(p[j] - new_max);
      block_sum.lane(j) += p[j];
    }
    sum = std::fma(sum, correction, block_sum.total());
    for (size_t d = 0; d < args.head_dim; ++d) {
      float o = out[d] * correction;
      for (size_t j = 0; j < range.count; ++j)
        o = std::fma(p[j], widen(values[(first + j) * args.value_stride + d]), o);
      out[d] = o;
    }
    max = new_max;
  }
  for (size_t d = 0; d < args.head_dim; ++d) out[d] = out[d] / sum;
}

template <class Element>
void attention(const AttentionArgs& args) {
  for (size_t t = 0; t < args.token_count; ++t) {
    for (size_t j = 0; j < args.group_size; ++j) {
      const size_t offset = t * args.token_stride + j * args.head_dim;
      attend<Element>(args, args.queries + offset, args.first_position + t + 1, args.out + offset);
    }
  }
}

template <class Element>
void store_key(const float* key, size_t head_dim, size_t position, void* keys) {
  auto* stored = static_cast<Element*>(keys);
  for (size_t d = 0; d < head_dim; ++d) narrow(key[d], stored[key_index(position, head_dim, d)]);
}

template <class Element>
void store_value(const float* value, size_t head_dim, size_t position, size_t value_stride,
                 void* values) {
  auto* stored = static_cast<Element*>(values) + position * value_stride;
  for (size_t d = 0; d < head_dim; ++d) narrow(value[d], stored[d]);
  for (size_t d = head_dim; d < value_stride; ++d) stored[d] = 0;
}

}  // namespace

void attention_f16(const AttentionArgs& args) {
  attention<uint16_t>(args);
}
void attention_f32(const AttentionArgs& args) {
  attention<float>(args);
}

void store_key_f16(const float* key, size_t head_dim, size_t position, void* keys) {
  store_key<uint16_t>(key, head_dim, position, keys);
}
void store_key_f32(const float* key, size_t head_dim, size_t position, void* keys) {
  store_key<float>(key, head_dim, position, keys);
}
void store_value_f16(const float* value, size_t head_dim, size_t position, size_t value_stride,
                     void* values) {
  store_value<uint16_t>(value, head_dim, position, value_stride, values);
}
void store_value_f32(const float* value, size_t head_dim, size_t position, size_t value_stride,
                     void* values) {
  store_value<float>(value, head_dim, position, value_stride, values);
}

}  // namespace sluice::kernels::ref
