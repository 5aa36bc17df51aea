#include "model/plan_mixers.h"

namespace sluice {
namespace {

/// Where the tensors of one layer's mixer are to be found, and what they have to fit.
struct MixerPlan {
  TensorPlanner& plan;
  const ModelConfig& config;
  const LayerConfig& shape;
  std::string prefix;  ///< "blk.N."

  std::string name(std::string_view rest) const { return fmt::format("{}{}", prefix, rest); }
};

void plan_query_key_norms(const MixerPlan& mixer, AttentionWeights& attention) {
  const QueryKeyNorm kind = mixer.config.architecture->query_key_norm;
  if (kind == QueryKeyNorm::none) return;
  const std::string query = mixer.name("attn_q_norm.weight");
  if (kind == QueryKeyNorm::per_head_if_present && !mixer.plan.has(query)) return;
  const LayerConfig& shape = mixer.shape;
  const bool whole = kind == QueryKeyNorm::whole;
  mixer.plan.vector(query, (whole ? shape.head_count : 1) * shape.key_dim, attention.query_norm);
  mixer.plan.vector(mixer.name("attn_k_norm.weight"),
                    (whole ? shape.kv_head_count : 1) * shape.key_dim, attention.key_norm);
}

void plan_values(const MixerPlan& mixer, uint64_t rows, AttentionWeights& attention) {
  const bool are_keys = mixer.config.architecture->keys_serve_as_values &&
                        mixer.shape.key_dim == mixer.shape.value_dim &&
                        !mixer.plan.has(mixer.name("attn_v.weight"));
  if (!are_keys)
    mixer.plan.projection(mixer.name("attn_v"), rows, mixer.config.hidden_size, attention.value);
}

void plan_attention(const MixerPlan& mixer, AttentionWeights& attention) {
  TensorPlanner& plan = mixer.plan;
  const LayerConfig& shape = mixer.shape;
  const uint64_t hidden = mixer.config.hidden_size;
  const uint64_t parts = mixer.config.architecture->has_gated_attention ? 2 : 1;
  const uint64_t query_rows = parts * shape.head_count * shape.key_dim;
  const uint64_t key_rows = uint64_t{shape.kv_head_count} * shape.key_dim;
  const uint64_t value_rows = uint64_t{shape.kv_head_count} * shape.value_dim;
  if (const std::string fused = mixer.name("attn_qkv.weight"); plan.has(fused)) {
    const uint64_t rows = query_rows + key_rows + value_rows;
    plan.slice(fused, 0, query_rows, rows, hidden, attention.query.weight);
    plan.slice(fused, query_rows, key_rows, rows, hidden, attention.key.weight);
    plan.slice(fused, query_rows + key_rows, value_rows, rows, hidden, attention.value.weight);
  } else {
    plan.projection(mixer.name("attn_q"), query_rows, hidden, attention.query);
    plan.projection(mixer.name("attn_k"), key_rows, hidden, attention.key);
    plan_values(mixer, value_rows, attention);
  }
  plan.projection(mixer.name("attn_output"), hidden, uint64_t{shape.head_count} * shape.value_dim,
                  attention.output);
  plan_query_key_norms(mixer, attention);
  plan.optional_vector(mixer.name("attn_sinks.weight"), shape.head_count, attention.sinks);
}

/// Older files have one matrix for keys and values of all heads.
void plan_key_value_up(const MixerPlan& mixer, LatentWeights& latent, WeightMap& map) {
  const LatentConfig& shape = mixer.config.latent;
  const size_t heads = mixer.shape.head_count;
  const size_t rows = shape.unrotated_dim + shape.value_dim;
  mixer.plan.dense(mixer.name("attn_kv_b.weight"), heads * rows, shape.latent_dim,
                   latent.key_value_up);
  if (mixer.plan.error()) return;
  map.transposed.push_back({.from = &latent.key_value_up,
                            .block_count = heads,
                            .block_step = rows,
                            .row_count = shape.unrotated_dim,
                            .to = &latent.key_up});
  latent.key_up = map.transposed.back().shape();
}

void plan_latent_attention(const MixerPlan& mixer, LatentWeights& latent, WeightMap& map) {
  TensorPlanner& plan = mixer.plan;
  const LatentConfig& shape = mixer.config.latent;
  const uint64_t hidden = mixer.config.hidden_size;
  const uint64_t heads = mixer.shape.head_count;
  const uint64_t query_rows = heads * shape.query_dim();
  if (shape.query_rank > 0) {
    plan.dense(mixer.name("attn_q_a.weight"), shape.query_rank, hidden, latent.query_down);
    plan.vector(mixer.name("attn_q_a_norm.weight"), shape.query_rank, latent.query_down_norm);
    plan.dense(mixer.name("attn_q_b.weight"), query_rows, shape.query_rank, latent.query);
  } else {
    plan.dense(mixer.name("attn_q.weight"), query_rows, hidden, latent.query);
  }
  plan.dense(mixer.name("attn_kv_a_mqa.weight"), shape.key_dim(), hidden, latent.latent_down);
  plan.vector(mixer.name("attn_kv_a_norm.weight"), shape.latent_dim, latent.latent_norm);
  if (plan.has(mixer.name("attn_kv_b.weight"))) {
    plan_key_value_up(mixer, latent, map);
  } else {
    plan.stacked(mixer.name("attn_k_b.weight"), heads, shape.latent_dim, shape.unrotated_dim,
                 latent.key_up);
    plan.stacked(mixer.name("attn_v_b.weight"), heads, shape.value_dim, shape.latent_dim,
                 latent.value_up);
  }
  if (plan.has(mixer.name("attn_gate.weight")))
    plan.dense(mixer.name("attn_gate.weight"), heads, hidden, latent.gate);
  plan.projection(mixer.name("attn_output"), hidden, heads * shape.value_dim, latent.output);
}

/// Files have a convolution's taps channel by channel; the kernel wants them tap by tap.
void transpose_taps(const Matrix& channel_taps, Matrix& taps, WeightMap& map) {
  map.transposed.push_back({.from = &channel_taps,
                            .block_count = 1,
                            .block_step = channel_taps.rows,
                            .row_count = channel_taps.rows,
                            .to = &taps});
  taps = map.transposed.back().shape();
}

void plan_short_convolution(const MixerPlan& mixer, ConvolutionWeights& convolution,
                            WeightMap& map) {
  const uint64_t hidden = mixer.config.hidden_size;
  mixer.plan.dense(mixer.name("shortconv.in_proj.weight"), 3 * hidden, hidden, convolution.in);
  mixer.plan.dense(mixer.name("shortconv.out_proj.weight"), hidden, hidden, convolution.out);
  mixer.plan.floats(mixer.name("shortconv.conv.weight"), hidden, mixer.config.convolution_width,
                    convolution.channel_taps);
  if (!mixer.plan.error()) transpose_taps(convolution.channel_taps, convolution.taps, map);
}

void plan_convolved(const MixerPlan& mixer, std::string_view projection, std::string_view taps,
                    uint64_t channels, DeltaNetWeights::Convolved& input, WeightMap& map) {
  mixer.plan.dense(mixer.name(projection), channels, mixer.config.hidden_size, input.weight);
  mixer.plan.squeezed_floats(mixer.name(taps), channels, mixer.config.delta.convolution_width,
                             input.channel_taps);
  if (!mixer.plan.error()) transpose_taps(input.channel_taps, input.taps, map);
}

/// A matrix, or the product of two with few numbers in between.
void plan_in_two_steps(const MixerPlan& mixer, std::string_view first, std::string_view second,
                       uint64_t rows, Matrix& down, Matrix& matrix) {
  const uint64_t hidden = mixer.config.hidden_size;
  if (!mixer.plan.has(mixer.name(second)))
    return mixer.plan.dense(mixer.name(first), rows, hidden, matrix);
  mixer.plan.dense(mixer.name(first), 0, hidden, down);
  mixer.plan.dense(mixer.name(second), rows, down.rows, matrix);
}

void plan_kimi_delta(const MixerPlan& mixer, DeltaNetWeights& delta, WeightMap& map) {
  const DeltaConfig& shape = mixer.config.delta;
  const uint64_t hidden = mixer.config.hidden_size;
  const uint64_t keys = shape.key_channels();
  plan_convolved(mixer, "attn_q.weight", "ssm_conv1d_q.weight", keys, delta.inputs[0], map);
  plan_convolved(mixer, "attn_k.weight", "ssm_conv1d_k.weight", keys, delta.inputs[1], map);
  plan_convolved(mixer, "attn_v.weight", "ssm_conv1d_v.weight", shape.value_channels(),
                 delta.inputs[2], map);
  plan_in_two_steps(mixer, "ssm_f_a.weight", "ssm_f_b.weight", keys, delta.decay_down, delta.decay);
  plan_in_two_steps(mixer, "ssm_g_a.weight", "ssm_g_b.weight", shape.value_channels(),
                    delta.gate_down, delta.gate);
  mixer.plan.vector(mixer.name("ssm_dt.bias"), keys, delta.decay_bias);
  mixer.plan.dense(mixer.name("ssm_beta.weight"), shape.value_head_count, hidden, delta.strength);
  mixer.plan.dense(mixer.name("attn_output.weight"), hidden, shape.value_channels(), delta.output);
}

void plan_gated_delta_net(const MixerPlan& mixer, DeltaNetWeights& delta, WeightMap& map) {
  const DeltaConfig& shape = mixer.config.delta;
  const uint64_t hidden = mixer.config.hidden_size;
  const uint64_t heads = shape.value_head_count;
  plan_convolved(mixer, "attn_qkv.weight", "ssm_conv1d.weight", shape.channels(), delta.inputs[0],
                 map);
  mixer.plan.dense(mixer.name("attn_gate.weight"), shape.value_channels(), hidden, delta.gate);
  if (const std::string fused = mixer.name("ssm_ba.weight"); mixer.plan.has(fused)) {
    mixer.plan.dense(fused, 2 * heads, hidden, delta.strength_and_decay);
  } else {
    mixer.plan.dense(mixer.name("ssm_beta.weight"), heads, hidden, delta.strength);
    mixer.plan.dense(mixer.name("ssm_alpha.weight"), heads, hidden, delta.decay);
  }
  mixer.plan.vector(mixer.name("ssm_dt.bias"), heads, delta.decay_bias);
  mixer.plan.dense(mixer.name("ssm_out.weight"), hidden, shape.value_channels(), delta.output);
}

void plan_delta_net(const MixerPlan& mixer, DeltaNetWeights& delta, WeightMap& map) {
  const DeltaConfig& shape = mixer.config.delta;
  if (mixer.config.architecture->delta == DeltaForm::kda)
    plan_kimi_delta(mixer, delta, map);
  else
    plan_gated_delta_net(mixer, delta, map);
  mixer.plan.squeezed_floats(mixer.name("ssm_a"), shape.value_head_count, 1, delta.decay_factor);
  mixer.plan.vector(mixer.name("ssm_norm.weight"), shape.value_dim, delta.norm);
}

}  // namespace

void plan_mixer(TensorPlanner& plan, size_t index, const ModelConfig& config, WeightMap& map) {
  LayerWeights& layer = map.dense.layers[index];
  const MixerPlan mixer{plan, config, config.layers[index], fmt::format("blk.{}.", index)};
  plan.vector(mixer.name("attn_norm.weight"), config.hidden_size, layer.mixer_norm);
  switch (mixer.shape.mixer) {
    case MixerKind::attention:
      return plan_attention(mixer, layer.attention);
    case MixerKind::latent_attention:
      return plan_latent_attention(mixer, layer.latent, map);
    case MixerKind::short_convolution:
      return plan_short_convolution(mixer, layer.convolution, map);
    case MixerKind::delta_net:
      return plan_delta_net(mixer, layer.delta, map);
  }
}

}  // namespace sluice
