#include "backend/cpu/latent_attention.h"

#include <algorithm>

#include "backend/cpu/cached_attention.h"
#include "base/elementary.h"

namespace sluice {

LatentAttention::LatentAttention(const CpuContext& cpu, const std::vector<RopeTable>& ropes)
    : cpu_(cpu), shape_(cpu.config.latent), ropes_(ropes) {
  for (size_t i = 0; i < cpu.config.layer_count(); ++i) {
    if (cpu.config.layers[i].mixer != MixerKind::latent_attention) continue;
    head_max_ = std::max<size_t>(head_max_, cpu.config.layers[i].head_count);
    const LatentWeights& weights = cpu.map.dense.layers[i].latent;
    if (weights.query_down.present()) low_input_.want(format_of(weights.query));
    unrotated_input_.want(format_of(weights.key_up));
    attended_input_.want(format_of(weights.value_rows()));
    value_input_.want(format_of(weights.output.weight));
  }
  jobs_.resize(head_max_);
}

void LatentAttention::want_input(const LayerWeights& layer, ActivationSet& input) const {
  const LatentWeights& weights = layer.latent;
  input.want(format_of(weights.query_down.present() ? weights.query_down : weights.query));
  input.want(format_of(weights.latent_down));
  if (weights.gate.present()) input.want(format_of(weights.gate));
}

void LatentAttention::lay_out(Carver& carve) {
  const size_t tokens = cpu_.limits.ubatch_token_max;
  const size_t heads = tokens * head_max_;
  const auto floats_and_rows = [&](size_t rows, size_t cols, float*& floats, ActivationSet& set) {
    floats = carve.floats(rows * cols);
    set.place(carve.take(set.bytes(rows, cols)), rows, cols);
  };
  floats_and_rows(tokens, shape_.query_rank, low_, low_input_);
  query_ = carve.floats(heads * shape_.query_dim());
  gate_ = carve.floats(heads);
  latent_ = carve.floats(tokens * shape_.key_dim());
  absorbed_ = carve.floats(heads * shape_.key_dim());
  unrotated_input_.place(carve.take(unrotated_input_.bytes(heads, shape_.unrotated_dim)), heads,
                         shape_.unrotated_dim);
  floats_and_rows(heads, shape_.latent_dim, attended_, attended_input_);
  floats_and_rows(tokens, head_max_ * shape_.value_dim, value_, value_input_);
}

void LatentAttention::mix(size_t layer, size_t first_position, size_t token_count,
                          const ActivationSet& input, SequenceState& state, float* out) {
  const LatentWeights& weights = cpu_.map.dense.layers[layer].latent;
  project(weights, token_count, input);
  store_latents(layer, first_position, token_count, state);
  absorb_queries(layer, first_position, token_count);
  attend(cpu_, state, layer,
         {.first_position = first_position,
          .token_count = token_count,
          .queries = absorbed_,
          .attended = attended_});
  raise_values(layer, token_count);
  cpu_.multiply(product_of(weights.output.weight, value_input_, token_count, out));
  cpu_.add_bias(weights.output.bias, token_count, out);
}

/// Queries, by way of a shorter vector where the family has one, and latents.
void LatentAttention::project(const LatentWeights& weights, size_t token_count,
                              const ActivationSet& input) {
  const bool in_two_steps = weights.query_down.present();
  const MatmulJob jobs[] = {in_two_steps ? product_of(weights.query_down, input, token_count, low_)
                                         : product_of(weights.query, input, token_count, query_),
                            product_of(weights.latent_down, input, token_count, latent_),
                            product_of(weights.gate, input, token_count, gate_)};
  cpu_.multiply(std::span(jobs).first(weights.gate.present() ? 3 : 2));
  if (!in_two_steps) return;
  const size_t rank = shape_.query_rank;
  cpu_.for_tokens(token_count, [&](size_t token) {
    cpu_.normalise_rows(low_ + token * rank, 1, rank, weights.query_down_norm);
    low_input_.write(cpu_.kernels, token, low_ + token * rank, rank);
  });
  cpu_.multiply(product_of(weights.query, low_input_, token_count, query_));
}

void LatentAttention::store_latents(size_t layer, size_t first_position, size_t token_count,
                                    SequenceState& state) {
  const LayerConfig& config = cpu_.config.layers[layer];
  const Matrix& norm = cpu_.map.dense.layers[layer].latent.latent_norm;
  cpu_.for_tokens(token_count, [&](size_t token) {
    const size_t position = first_position + token;
    float* key = latent_ + token * shape_.key_dim();
    cpu_.normalise_rows(key, 1, shape_.latent_dim, norm);
    if (config.is_rotated) ropes_[config.rope].rotate(cpu_, key + shape_.latent_dim, position);
    store_key_value(cpu_, state, layer, 0, position, key, key);
  });
}

/// The unrotated part of a query meets latents instead of keys: it is multiplied by what would
/// have made keys of them.
void LatentAttention::absorb_queries(size_t layer, size_t first_position, size_t token_count) {
  const LayerConfig& config = cpu_.config.layers[layer];
  const size_t heads = config.head_count;
  cpu_.for_tokens(token_count, [&](size_t token) {
    const float factor = cpu_.config.temperature.factor(first_position + token);
    for (size_t head = token * heads; head < (token + 1) * heads; ++head) {
      float* query = query_ + head * shape_.query_dim();
      float* rotated = absorbed_ + head * shape_.key_dim() + shape_.latent_dim;
      std::copy_n(query + shape_.unrotated_dim, shape_.rotated_dim, rotated);
      if (config.is_rotated) ropes_[config.rope].rotate(cpu_, rotated, first_position + token);
      for (float& x : std::span(rotated, shape_.rotated_dim)) x *= factor;
      for (float& x : std::span(query, shape_.unrotated_dim)) x *= factor;
      unrotated_input_.write(cpu_.kernels, head, query, shape_.unrotated_dim);
    }
  });
  multiply_by_heads({.weights = cpu_.map.dense.layers[layer].latent.key_up,
                     .head_count = heads,
                     .first_row = 0,
                     .step = shape_.latent_dim,
                     .row_count = shape_.latent_dim},
                    unrotated_input_, token_count, absorbed_, shape_.key_dim());
}

/// What a head saw is a mean of latents; its values are made of that.
void LatentAttention::raise_values(size_t layer, size_t token_count) {
  const Matrix& value_rows = cpu_.map.dense.layers[layer].latent.value_rows();
  const size_t heads = cpu_.config.layers[layer].head_count;
  cpu_.for_tokens(token_count, [&](size_t token) {
    for (size_t head = token * heads; head < (token + 1) * heads; ++head)
      attended_input_.write(cpu_.kernels, head, attended_ + head * shape_.latent_dim,
                            shape_.latent_dim);
  });
  const size_t step = value_rows.rows / heads;
  multiply_by_heads({.weights = value_rows,
                     .head_count = heads,
                     .first_row = step - shape_.value_dim,
                     .step = step,
                     .row_count = shape_.value_dim},
                    attended_input_, token_count, value_, shape_.value_dim);
  const size_t row = heads * shape_.value_dim;
  const bool gated = cpu_.map.dense.layers[layer].latent.gate.present();
  cpu_.for_tokens(token_count, [&](size_t token) {
    for (size_t head = token * heads; gated && head < (token + 1) * heads; ++head) {
      const float share = sigmoid_f32(gate_[head]);
      for (float& x : std::span(value_ + head * shape_.value_dim, shape_.value_dim)) x *= share;
    }
    value_input_.write(cpu_.kernels, token, value_ + token * row, row);
  });
}

/// out[token][head][out_size] = the head's matrix times row (token, head) of the input.
void LatentAttention::multiply_by_heads(const HeadMatrices& heads, const ActivationSet& input,
                                        size_t token_count, float* out, size_t out_size) {
  const ActivationRows& rows = input.rows(format_of(heads.weights));
  for (size_t head = 0; head < heads.head_count; ++head)
    jobs_[head] = {
        .weights = heads.weights.rows_from(heads.first_row + head * heads.step, heads.row_count),
        .activations = rows.row(head),
        .activation_stride = rows.stride * heads.head_count,
        .token_count = token_count,
        .out = out + head * out_size,
        .out_stride = heads.head_count * out_size};
  cpu_.multiply(std::span(jobs_).first(heads.head_count));
}

}  // namespace sluice
