// Attention by blocks of keys with an online softmax.
#include <cmath>
#include <limits>

#include "base/elementary.h"
#include "kernels/ref/kv_element.h"
#include "kernels/ref/ref.h"
#include "kernels/ref/sum16.h"

namespace sluice::kernels::ref {
namespace {

/// fma over the dimensions first … end − 1.
template <class Kv>
float chain(const AttentionArgs& args, const float* query, size_t position, size_t first,
            size_t end) {
  const auto* keys = static_cast<const typename Kv::Element*>(args.keys);
  float acc = 0.0f;
  for (size_t d = first; d < end; ++d)
    acc = std::fma(query[d], Kv::widen(keys[key_index<Kv>(args.key_dim, position, d)]), acc);
  return acc;
}

float scale_of(const void* tiles, size_t row_elements, size_t position, size_t d) {
  return f16_to_f32(static_cast<const uint16_t*>(tiles)[scale_index(row_elements, position, d)]);
}

template <class Kv>
float dot(const AttentionArgs& args, const float* query, size_t position) {
  if (Kv::kType != KvType::q8_0) return chain<Kv>(args, query, position, 0, args.key_dim);
  float acc = 0.0f;
  for (size_t first = 0; first < args.key_dim; first += kKvBlock) {
    const size_t left = args.key_dim - first;
    const size_t end = first + (left < kKvBlock ? left : kKvBlock);
    const float scale = scale_of(args.keys, args.key_dim, position, first);
    acc = std::fma(scale, chain<Kv>(args, query, position, first, end), acc);
  }
  return acc;
}

/// w_j[d] of the definition.
template <class Kv>
float weight(const AttentionArgs& args, size_t position, size_t d, float p) {
  if (Kv::kType != KvType::q8_0) return p;
  return p * scale_of(args.values, args.value_stride, position, d);
}

/// One query that sees the keys first_key … key_count − 1. `out` is o of the definition all along.
template <class Kv>
void attend(const AttentionArgs& args, const float* query, const float* sink, size_t key_count,
            float* out) {
  const auto* values = static_cast<const typename Kv::Element*>(args.values);
  float max = sink != nullptr ? *sink : -std::numeric_limits<float>::infinity();
  float sum = sink != nullptr ? 1.0f : 0.0f;
  for (size_t d = 0; d < args.value_dim; ++d) out[d] = 0.0f;
  for (size_t first = 0; first < key_count; first += kAttentionBlock) {
    const size_t left = key_count - first;
    const size_t count = left < kAttentionBlock ? left : kAttentionBlock;
    const size_t begin = first == 0 ? args.first_key : 0;
    const size_t place = args.block_in_memory(first / kAttentionBlock) * kAttentionBlock;
    float p[kAttentionBlock];
    float new_max = max;
    for (size_t j = begin; j < count; ++j) {
      p[j] = dot<Kv>(args, query, place + j) * args.scale;
      new_max = p[j] > new_max ? p[j] : new_max;
    }
    const float correction = exp_f32(max - new_max);
    Sum16 block_sum;
    for (size_t j = begin; j < count; ++j) {
      p[j] = exp_f32(p[j] - new_max);
      block_sum.lane(j) += p[j];
    }
    sum = std::fma(sum, correction, block_sum.total());
    for (size_t d = 0; d < args.value_dim; ++d) {
      float o = out[d] * correction;
      for (size_t j = begin; j < count; ++j) {
        const auto value = values[value_index<Kv>(args.value_stride, place + j, d)];
        o = std::fma(weight<Kv>(args, place + j, d, p[j]), Kv::widen(value), o);
      }
      out[d] = o;
    }
    max = new_max;
  }
  for (size_t d = 0; d < args.value_dim; ++d) out[d] = out[d] / sum;
}

template <class Kv>
void attention(const AttentionArgs& args) {
  for (size_t t = 0; t < args.token_count; ++t) {
    for (size_t j = 0; j < args.group_size; ++j) {
      attend<Kv>(args, args.queries + t * args.query_stride + j * args.key_dim,
                 args.sinks != nullptr ? args.sinks + j : nullptr, args.first_position + t + 1,
                 args.out + t * args.out_stride + j * args.value_dim);
    }
  }
}

}  // namespace

void attention_f16(const AttentionArgs& args) {
  attention<KvF16>(args);
}
void attention_f32(const AttentionArgs& args) {
  attention<KvF32>(args);
}
void attention_q8_0(const AttentionArgs& args) {
  attention<KvQ8_0>(args);
}

}  // namespace sluice::kernels::ref
