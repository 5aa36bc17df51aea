#include "model/weight_map.h"

#include <algorithm>

#include "base/units.h"
#include "model/plan_mixers.h"
#include "model/tensor_planner.h"

namespace sluice {
namespace {

ExpertLayout plan_experts(TensorPlanner& plan, const std::string& prefix, uint64_t experts,
                          const ModelConfig& config) {
  const uint64_t wide = config.expert_hidden_size;
  const uint64_t hidden = config.hidden_size;
  std::vector<ExpertPart> parts;
  if (plan.has(prefix + "ffn_gate_up_exps.weight")) {
    parts.push_back(plan.expert_part(prefix + "ffn_gate_up_exps.weight", ExpertPartKind::gate_up,
                                     2 * wide, hidden, experts));
  } else {
    parts.push_back(plan.expert_part(prefix + "ffn_gate_exps.weight", ExpertPartKind::gate, wide,
                                     hidden, experts));
    parts.push_back(
        plan.expert_part(prefix + "ffn_up_exps.weight", ExpertPartKind::up, wide, hidden, experts));
  }
  parts.push_back(plan.expert_part(prefix + "ffn_down_exps.weight", ExpertPartKind::down, hidden,
                                   wide, experts));
  if (plan.error()) return {};
  return ExpertLayout(static_cast<uint32_t>(experts), parts);
}

/// The router, its experts, and what every token uses beside them.
void plan_moe(TensorPlanner& plan, size_t index, const ModelConfig& config, LayerWeights& layer,
              WeightMap& map) {
  const std::string prefix = fmt::format("blk.{}.", index);
  const uint64_t hidden = config.hidden_size;
  const uint64_t experts = plan.expert_count(prefix + "ffn_down_exps.weight");
  if (experts < config.expert_used_count || experts > config.expert_count)
    plan.fail(make_error(ErrorKind::corrupt, "layer {} has {} experts; {} are used of {}", index,
                         experts, config.expert_used_count, config.expert_count));
  plan.dense(prefix + "ffn_gate_inp.weight", experts, hidden, layer.router);
  plan.optional_vector(prefix + "ffn_gate_inp.bias", experts, layer.router_bias);
  plan.optional_vector(prefix + "exp_probs_b.bias", experts, layer.selection_bias);
  const uint64_t wide = config.expert_hidden_size;
  plan.optional_floats(prefix + "ffn_gate_exps.bias", experts, wide, layer.expert_biases.gate);
  plan.optional_floats(prefix + "ffn_up_exps.bias", experts, wide, layer.expert_biases.up);
  plan.optional_floats(prefix + "ffn_down_exps.bias", experts, hidden, layer.expert_biases.down);
  plan.optional_vector(prefix + "ffn_down_exps.scale", experts, layer.expert_scales);
  plan.optional_vector(prefix + "ffn_gate_inp.scale", hidden, layer.router_norm);
  plan.optional_vector(prefix + "pre_ffw_norm_2.weight", hidden, layer.experts_norm);
  plan.optional_vector(prefix + "post_ffw_norm_2.weight", hidden, layer.norm_after_experts);
  map.experts.push_back(plan_experts(plan, prefix, experts, config));
  for (const std::string_view kind : {"_shexp", ""}) {
    if (layer.shared.present() || !plan.has(fmt::format("{}ffn_down{}.weight", prefix, kind)))
      continue;
    plan.dense_ffn(prefix, kind, hidden, layer.shared);
    plan.optional_vector(prefix + "ffn_gate_inp_shexp.weight", hidden, layer.shared_gate);
    plan.optional_vector(prefix + "post_ffw_norm_1.weight", hidden, layer.norm_after_shared);
  }
}

void plan_layer(TensorPlanner& plan, size_t index, const ModelConfig& config, WeightMap& map) {
  const std::string prefix = fmt::format("blk.{}.", index);
  LayerWeights& layer = map.dense.layers[index];
  plan_mixer(plan, index, config, map);
  const uint64_t hidden = config.hidden_size;
  const std::string ffn_norm = fmt::format("{}{}.weight", prefix, config.architecture->ffn_norm);
  plan.vector(ffn_norm, hidden, layer.ffn_norm);
  if (const std::string after = prefix + "post_attention_norm.weight"; after != ffn_norm)
    plan.optional_vector(after, hidden, layer.norm_after_mixer);
  plan.optional_vector(prefix + "post_ffw_norm.weight", hidden, layer.norm_after_ffn);
  plan.optional_vector(prefix + "layer_output_scale.weight", 1, layer.output_scale);
  if (plan.has(prefix + "ffn_gate_inp.weight") || plan.has(prefix + "ffn_down_exps.weight"))
    return plan_moe(plan, index, config, layer, map);
  plan.dense_ffn(prefix, "", hidden, layer.ffn);
  map.experts.emplace_back();
}

/// One row for all contexts, or one for short and one for long ones.
void plan_divisors(TensorPlanner& plan, const RopeConfig& rope, DenseWeights& dense) {
  const uint64_t pairs = rope.rotated_dim / 2;
  if (plan.has("rope_freqs.weight"))
    return plan.vector("rope_freqs.weight", pairs, dense.rope_divisors);
  if (!plan.has("rope_factors_long.weight") && !plan.has("rope_factors_short.weight")) return;
  plan.vector("rope_factors_short.weight", pairs, dense.rope_divisors);
  plan.vector("rope_factors_long.weight", pairs, dense.rope_divisors_long);
}

}  // namespace

const Matrix& DenseWeights::divisors_for(const ModelConfig& config, size_t context_tokens) const {
  const bool is_long = context_tokens > config.ropes.front().original_context_tokens;
  return is_long && rope_divisors_long.present() ? rope_divisors_long : rope_divisors;
}

const ExpertLayout& WeightMap::first_experts() const {
  return *std::ranges::find_if(experts,
                               [](const ExpertLayout& layer) { return layer.expert_count() > 0; });
}

uint64_t WeightMap::dense_bytes() const {
  uint64_t bytes = 0;
  for (const DenseTensor& tensor : dense_tensors) bytes += tensor.extent.bytes;
  return bytes + transposed_bytes();
}

uint64_t WeightMap::transposed_bytes() const {
  uint64_t bytes = 0;
  for (const TransposedWeights& weights : transposed) bytes += round_up(weights.to->bytes(), 64);
  return bytes;
}

void WeightMap::transpose_weights(std::byte* memory) const {
  for (const TransposedWeights& weights : transposed) {
    transpose(weights, memory);
    memory += round_up(weights.to->bytes(), 64);
  }
}

uint64_t WeightMap::expert_bytes() const {
  uint64_t bytes = 0;
  for (const ExpertLayout& layer : experts) bytes += layer.expert_bytes() * layer.expert_count();
  return bytes;
}

uint64_t WeightMap::expert_bytes_per_token(const ModelConfig& config) const {
  uint64_t bytes = 0;
  for (const ExpertLayout& layer : experts)
    if (layer.expert_count() > 0) bytes += layer.expert_bytes() * config.expert_used_count;
  return bytes;
}

uint64_t WeightMap::dense_bytes_per_token() const {
  return dense_bytes() - (output_is_embedding ? 0 : dense.embedding.bytes());
}

Result<std::unique_ptr<WeightMap>> plan_weights(const gguf::GgufFile& file, ModelConfig& config) {
  auto map = std::make_unique<WeightMap>();
  map->dense.layers.resize(config.layer_count());
  TensorPlanner plan(file, *map);
  plan.dense("token_embd.weight", 0, config.hidden_size, map->dense.embedding);
  config.vocabulary_size = static_cast<uint32_t>(map->dense.embedding.rows);
  plan_divisors(plan, config.ropes.front(), map->dense);
  plan.vector("output_norm.weight", config.hidden_size, map->dense.output_norm);
  map->output_is_embedding = !plan.has("output.weight");
  if (!map->output_is_embedding)
    plan.dense("output.weight", config.vocabulary_size, config.hidden_size, map->dense.output);
  for (size_t i = 0; i < config.layer_count() && !plan.error(); ++i)
    plan_layer(plan, i, config, *map);
  if (!plan.error() && map->expert_bytes() == 0)
    plan.fail(make_error(ErrorKind::unsupported,
                         "no layer has routed experts; this version runs no dense models"));
  plan.refuse_unused(config.layer_count());
  if (plan.error()) return *plan.error();
  return map;
}

}  // namespace sluice
