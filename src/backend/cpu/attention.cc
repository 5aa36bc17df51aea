#include "backend/cpu/attention.h"

#include <algorithm>

#include "backend/cpu/cached_attention.h"

namespace sluice {

Attention::Attention(const CpuContext& cpu, const std::vector<RopeTable>& ropes)
    : cpu_(cpu), ropes_(ropes) {
  for (size_t i = 0; i < cpu.config.layer_count(); ++i) {
    const LayerConfig& shape = cpu.config.layers[i];
    if (shape.mixer != MixerKind::attention) continue;
    query_max_ = std::max<size_t>(query_max_, shape.head_count * shape.key_dim);
    key_max_ = std::max<size_t>(key_max_, shape.kv_head_count * shape.key_dim);
    value_max_ = std::max<size_t>(value_max_, shape.kv_head_count * shape.value_dim);
    attended_max_ = std::max<size_t>(attended_max_, shape.head_count * shape.value_dim);
    if (cpu.config.architecture->values_are_normalised)
      ones_.resize(std::max<size_t>(ones_.size(), shape.value_dim), 1.0f);
    attended_input_.want(format_of(cpu.map.dense.layers[i].attention.output.weight));
  }
}

void Attention::want_input(const LayerWeights& layer, ActivationSet& input) const {
  input.want(format_of(layer.attention.query.weight));
  input.want(format_of(layer.attention.key.weight));
  if (layer.attention.value.weight.present()) input.want(format_of(layer.attention.value.weight));
}

void Attention::lay_out(Carver& carve) {
  const size_t tokens = cpu_.limits.ubatch_token_max;
  query_ = carve.floats(tokens * query_max_);
  key_ = carve.floats(tokens * key_max_);
  value_ = carve.floats(tokens * value_max_);
  attended_ = carve.floats(tokens * attended_max_);
  attended_input_.place(carve.take(attended_input_.bytes(tokens, attended_max_)), tokens,
                        attended_max_);
}

void Attention::mix(size_t layer, size_t first_position, size_t token_count,
                    const ActivationSet& input, SequenceState& state, float* out) {
  project(layer, token_count, input);
  turn_and_store(layer, first_position, token_count, state);
  attend(cpu_, state, layer,
         {.first_position = first_position,
          .token_count = token_count,
          .queries = query_,
          .attended = attended_});

  const LayerConfig& shape = cpu_.config.layers[layer];
  const Projection& output = cpu_.map.dense.layers[layer].attention.output;
  const size_t row = shape.head_count * shape.value_dim;
  cpu_.for_tokens(token_count, [&](size_t token) {
    attended_input_.write(cpu_.kernels, token, attended_ + token * row, row);
  });
  cpu_.multiply(product_of(output.weight, attended_input_, token_count, out));
  cpu_.add_bias(output.bias, token_count, out);
}

void Attention::project(size_t layer, size_t token_count, const ActivationSet& input) {
  const AttentionWeights& weights = cpu_.map.dense.layers[layer].attention;
  const bool has_values = weights.value.weight.present();
  const auto product = [&](const Projection& projection, float* out) {
    return product_of(projection.weight, input, token_count, out);
  };
  const MatmulJob jobs[] = {product(weights.query, query_), product(weights.key, key_),
                            has_values ? product(weights.value, value_) : MatmulJob{}};
  cpu_.multiply(std::span(jobs).first(has_values ? 3 : 2));
  cpu_.add_bias(weights.query.bias, token_count, query_);
  cpu_.add_bias(weights.key.bias, token_count, key_);
  cpu_.add_bias(weights.value.bias, token_count, value_);
  if (!has_values) std::copy_n(key_, token_count * weights.key.weight.rows, value_);
}

/// Normalises and rotates the heads of one token's query or key, in the order of the family.
void Attention::turn_heads(size_t layer, float* heads, size_t head_count, const Matrix& norm,
                           size_t position) const {
  const LayerConfig& shape = cpu_.config.layers[layer];
  const size_t dim = shape.key_dim;
  const QueryKeyNorm kind = cpu_.config.architecture->query_key_norm;
  const bool whole = norm.present() && kind == QueryKeyNorm::whole;
  const bool per_head = norm.present() && kind != QueryKeyNorm::whole;
  const bool rotated_first = kind == QueryKeyNorm::rotated_per_head;
  if (whole) cpu_.normalise_rows(heads, 1, head_count * dim, norm);
  if (per_head && !rotated_first) cpu_.normalise_rows(heads, head_count, dim, norm);
  for (size_t head = 0; shape.is_rotated && head < head_count; ++head)
    ropes_[shape.rope].rotate(cpu_, heads + head * dim, position);
  if (per_head && rotated_first) cpu_.normalise_rows(heads, head_count, dim, norm);
}

void Attention::turn_and_store(size_t layer, size_t first_position, size_t token_count,
                               SequenceState& state) {
  const AttentionWeights& weights = cpu_.map.dense.layers[layer].attention;
  const LayerConfig& shape = cpu_.config.layers[layer];
  cpu_.for_tokens(token_count, [&](size_t token) {
    const size_t position = first_position + token;
    float* query = query_ + token * shape.head_count * shape.key_dim;
    float* key = key_ + token * shape.kv_head_count * shape.key_dim;
    float* value = value_ + token * shape.kv_head_count * shape.value_dim;
    turn_heads(layer, query, shape.head_count, weights.query_norm, position);
    turn_heads(layer, key, shape.kv_head_count, weights.key_norm, position);
    if (cpu_.config.architecture->values_are_normalised)
      for (size_t head = 0; head < shape.kv_head_count; ++head)
        cpu_.kernels.rms_norm(value + head * shape.value_dim, ones_.data(), cpu_.config.rms_epsilon,
                              shape.value_dim, value + head * shape.value_dim);
    for (size_t head = 0; head < shape.kv_head_count; ++head)
      store_key_value(cpu_, state, layer, head, position, key + head * shape.key_dim,
                      value + head * shape.value_dim);
  });
}

}  // namespace sluice
