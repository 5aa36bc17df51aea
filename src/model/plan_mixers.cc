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
  const uint64_t query_rows = uint64_t{shape.head_count} * shape.key_dim;
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
  plan.projection(mixer.name("attn_output"), hidden, heads * shape.value_dim, latent.output);
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
  }
}

}  // namespace sluice
