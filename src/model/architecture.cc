#include "model/architecture.h"

namespace sluice {
namespace {

constexpr GatingRule kSoftmax{};
constexpr GatingRule kSoftmaxUnscaled{.renormalise = false};
constexpr GatingRule kSigmoid{.function = GatingFunction::sigmoid};

constexpr Architecture kArchitectures[] = {
    {.name = "qwen3moe", .gating = kSoftmax, .query_key_norm = QueryKeyNorm::per_head},
    {.name = "qwen2moe", .gating = kSoftmaxUnscaled},
    {.name = "olmoe",
     .gating = kSoftmaxUnscaled,
     .query_key_norm = QueryKeyNorm::whole,
     .expert_width_is_ffn_width = true},
    {.name = "llama",
     .gating = kSoftmax,
     .rope = RopeKind::adjacent,
     .expert_width_is_ffn_width = true},
    {.name = "glm4moe",
     .gating = kSigmoid,
     .query_key_norm = QueryKeyNorm::per_head_if_present,
     .ffn_norm = "post_attention_norm"},
    {.name = "bailingmoe2", .gating = kSigmoid, .query_key_norm = QueryKeyNorm::per_head},
    {.name = "minimax-m2", .gating = kSigmoid, .query_key_norm = QueryKeyNorm::whole},
    {.name = "granitemoe",
     .gating = kSoftmax,
     .rope = RopeKind::adjacent,
     .has_scales = true,
     .expert_width_is_ffn_width = true},
    {.name = "ernie4_5-moe", .gating = kSoftmax, .rope = RopeKind::adjacent},
    {.name = "hunyuan-moe",
     .gating = kSoftmax,
     .query_key_norm = QueryKeyNorm::rotated_per_head,
     .expert_width_is_ffn_width = true},
    {.name = "gpt-oss",
     .gating = {.function = GatingFunction::softmax_of_chosen, .renormalise = false},
     .ffn_norm = "post_attention_norm",
     .activation = FfnActivation::clamped_silu,
     .windows = {.period = 2}},
    {.name = "smallthinker",
     .gating = kSigmoid,
     .activation = FfnActivation::relu,
     .windows = {.period = 4, .full_first = true},
     .full_layers_are_unrotated = true,
     .router_sees_layer_input = true},
    {.name = "deepseek2",
     .mixer = MixerKind::latent_attention,
     .gating = kSoftmaxUnscaled,
     .rope = RopeKind::adjacent},
    {.name = "mistral4",
     .mixer = MixerKind::latent_attention,
     .gating = kSoftmax,
     .rope = RopeKind::adjacent,
     .has_temperature = true},
    {.name = "gemma4",
     .gating = kSoftmax,
     .query_key_norm = QueryKeyNorm::per_head,
     .activation = FfnActivation::gelu,
     .windows = {.period = 6},
     .attention_scale = 1.0f,
     .embedding_scale_is_root = true,
     .values_are_normalised = true,
     .keys_serve_as_values = true,
     .has_logit_cap = true},
    {.name = "dots1", .gating = kSigmoid, .query_key_norm = QueryKeyNorm::per_head},
};

}  // namespace

const Architecture* find_architecture(std::string_view name) {
  for (const Architecture& row : kArchitectures)
    if (row.name == name) return &row;
  return nullptr;
}

std::string supported_architectures() {
  std::string names;
  for (const Architecture& row : kArchitectures) {
    if (!names.empty()) names += ", ";
    names += row.name;
  }
  return names;
}

}  // namespace sluice
