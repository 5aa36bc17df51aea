#include "model/known_keys.h"

#include <algorithm>
#include <span>

namespace sluice {
namespace {

/// Keys (after "<architecture>.") that change the arithmetic in ways not implemented for the
/// families of the table. A value that switches the feature off is harmless.
constexpr std::string_view kUnimplementedKeys[] = {
    "attention.clamp_kqv",        "attention.max_alibi_bias", "attention.output_scale",
    "attention.shared_kv_layers", "attn_logit_softcapping",   "embedding_length_per_layer_input",
    "expert_group_scale",         "rope.dimension_sections",  "router_logit_softcapping"};

constexpr std::string_view kScaleKeys[] = {"attention.scale", "logit_scale", "residual_scale",
                                           "embedding_scale"};
constexpr std::string_view kLatentKeys[] = {
    "attention.q_lora_rank", "attention.kv_lora_rank", "attention.key_length_mla",
    "attention.value_length_mla", "rope.scaling.yarn_log_multiplier"};
constexpr std::string_view kTemperatureKeys[] = {"attention.temperature_scale",
                                                 "attention.temperature_length"};
constexpr std::string_view kWindowKeys[] = {"attention.sliding_window_pattern",
                                            "rope.freq_base_swa", "rope.dimension_count_swa"};
/// Heads of layers with a window may differ where their size does not say how products are scaled.
constexpr std::string_view kWindowHeadKeys[] = {"attention.key_length_swa",
                                                "attention.value_length_swa"};
constexpr std::string_view kLogitCapKeys[] = {"final_logit_softcapping"};

/// Keys of a feature that only some families have.
struct FeatureKeys {
  std::span<const std::string_view> keys;
  bool (*has)(const Architecture&);
};
constexpr FeatureKeys kFeatures[] = {
    {kUnimplementedKeys, [](const Architecture&) { return false; }},
    {kScaleKeys, [](const Architecture& family) { return family.has_scales; }},
    {kLatentKeys,
     [](const Architecture& family) { return family.mixer == MixerKind::latent_attention; }},
    {kTemperatureKeys, [](const Architecture& family) { return family.has_temperature; }},
    {kWindowKeys, [](const Architecture& family) { return family.windows.period > 0; }},
    {kWindowHeadKeys,
     [](const Architecture& family) {
       return family.windows.period > 0 && family.attention_scale > 0;
     }},
    {kLogitCapKeys, [](const Architecture& family) { return family.has_logit_cap; }}};

/// Keys that are read for every family, or describe the file without changing the arithmetic: what
/// they count is seen in the tensors.
constexpr std::string_view kKnownKeys[] = {"block_count",
                                           "context_length",
                                           "embedding_length",
                                           "feed_forward_length",
                                           "vocab_size",
                                           "expert_count",
                                           "expert_used_count",
                                           "expert_feed_forward_length",
                                           "expert_gating_func",
                                           "expert_weights_norm",
                                           "expert_weights_scale",
                                           "expert_group_count",
                                           "expert_group_used_count",
                                           "expert_shared_count",
                                           "expert_shared_feed_forward_length",
                                           "leading_dense_block_count",
                                           "interleave_moe_layer_step",
                                           "attention.head_count",
                                           "attention.head_count_kv",
                                           "attention.key_length",
                                           "attention.value_length",
                                           "attention.layer_norm_rms_epsilon",
                                           "rope.dimension_count",
                                           "rope.freq_base",
                                           "rope.scaling.type",
                                           "rope.scaling.factor",
                                           "rope.scale_linear",
                                           "rope.scaling.original_context_length",
                                           "rope.scaling.attn_factor",
                                           "rope.scaling.yarn_attn_factor",
                                           "rope.scaling.yarn_beta_fast",
                                           "rope.scaling.yarn_beta_slow",
                                           "rope.scaling.yarn_ext_factor",
                                           "attention.sliding_window",
                                           "nextn_predict_layers"};

/// Whether a feature's key says "off": zero, false, or empty.
bool is_off(const gguf::Value& value) {
  if (const auto* number = std::get_if<uint64_t>(&value)) return *number == 0;
  if (const auto* number = std::get_if<int64_t>(&value)) return *number == 0;
  if (const auto* number = std::get_if<double>(&value)) return *number == 0.0;
  if (const auto* flag = std::get_if<bool>(&value)) return !*flag;
  return false;
}

bool is_among(std::span<const std::string_view> keys, std::string_view key) {
  return std::ranges::find(keys, key) != keys.end();
}

}  // namespace

Status check_keys(const gguf::GgufFile& file, const Architecture& architecture, const Log& log) {
  const std::string prefix = fmt::format("{}.", architecture.name);
  for (const auto& [key, value] : file.values()) {
    if (!key.starts_with(prefix)) continue;
    const std::string_view rest = std::string_view(key).substr(prefix.size());
    const auto* feature = std::ranges::find_if(
        kFeatures, [&](const FeatureKeys& some) { return is_among(some.keys, rest); });
    if (feature != std::end(kFeatures)) {
      if (!feature->has(architecture) && !is_off(value))
        return make_error(ErrorKind::unsupported,
                          "key '{}' asks for something that this version "
                          "does not implement for {}",
                          key, architecture.name);
    } else if (!is_among(kKnownKeys, rest)) {
      log.info("note: key '{}' is unknown and ignored", key);
    }
  }
  return {};
}

}  // namespace sluice
