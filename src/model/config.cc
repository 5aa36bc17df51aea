#include "model/config.h"

#include <algorithm>
#include <cmath>

#include "model/key_reader.h"
#include "model/known_keys.h"
#include "model/read_delta_net.h"

namespace sluice {
namespace {

constexpr uint64_t kLayerCountMax = 4096;

/// A group of experts must be large enough to be ranked, and enough of them to choose from.
void read_groups(KeyReader& keys, uint32_t expert_count, uint32_t used_count, GatingRule& rule) {
  const auto count = [&](std::string_view key) {
    return std::max(1u, static_cast<uint32_t>(keys.optional(key, 1, 0, kSizeMax)));
  };
  rule.group_count = count("expert_group_count");
  rule.group_used_count = count("expert_group_used_count");
  if (rule.group_count == 1) return;
  const uint32_t size = expert_count / rule.group_count;
  if (expert_count % rule.group_count != 0 || size < 2 || rule.group_count > kGroupsMax ||
      rule.group_used_count > rule.group_count || size * rule.group_used_count < used_count)
    keys.fail(make_error(ErrorKind::corrupt, "{} of {} groups cannot give {} of {} experts",
                         rule.group_used_count, rule.group_count, used_count, expert_count));
}

GatingRule read_gating(const Architecture& architecture, uint32_t expert_count, uint32_t used_count,
                       KeyReader& keys) {
  GatingRule rule = architecture.gating;
  const auto function =
      keys.optional("expert_gating_func", static_cast<uint64_t>(rule.function), 0, kSizeMax);
  if (function >= 1 && function <= 3)
    rule.function = static_cast<GatingFunction>(function);
  else if (function != 0)  // absent
    keys.fail(make_error(ErrorKind::unsupported, "key '{}' is {}; supported: 1 to 3",
                         keys.full("expert_gating_func"), function));
  if (const auto renormalise = keys.find_bool("expert_weights_norm"))
    rule.renormalise = *renormalise;
  const double scale = keys.optional_float("expert_weights_scale", 0.0);
  if (scale != 0.0) rule.scale = static_cast<float>(scale);  // absent or zero means 1
  read_groups(keys, expert_count, used_count, rule);
  if (rule.function == GatingFunction::softmax_of_chosen &&
      (rule.renormalise || rule.scale != 1.0f || rule.group_count > 1))
    keys.fail(
        make_error(ErrorKind::unsupported,
                   "a softmax of the chosen experts is not renormalised, scaled or limited to "
                   "groups; '{}' asks for it",
                   architecture.name));
  return rule;
}

/// A dense model has no experts to count; plan_weights() sees to it that its tensors agree.
void read_experts(KeyReader& keys, ModelConfig& config) {
  config.expert_count = static_cast<uint32_t>(keys.optional("expert_count", 0, 0, 65536));
  if (config.expert_count == 0) return;
  config.expert_used_count = static_cast<uint32_t>(keys.required("expert_used_count", 1024));
  if (config.expert_used_count > config.expert_count)
    keys.fail(make_error(ErrorKind::corrupt, "{} of {} experts used per token",
                         config.expert_used_count, config.expert_count));
  const uint64_t width = keys.optional("expert_feed_forward_length", 0, 0, kSizeMax);
  config.expert_hidden_size = static_cast<uint32_t>(
      width != 0 ? width
                 : keys.required(config.architecture->expert_width_is_ffn_width
                                     ? "feed_forward_length"
                                     : "expert_feed_forward_length",
                                 kSizeMax));
  config.gating =
      read_gating(*config.architecture, config.expert_count, config.expert_used_count, keys);
}

/// Absent or zero means that there is no such factor.
void read_scales(KeyReader& keys, ModelConfig& config) {
  const auto read = [&](std::string_view key, float& scale) {
    const double value = keys.optional_float(key, 0.0);
    if (value != 0.0) scale = static_cast<float>(value);
  };
  read("embedding_scale", config.embedding_scale);
  read("residual_scale", config.residual_scale);
  read("attention.scale", config.attention_scale);
  read("logit_scale", config.logit_scale);
}

/// A positive number, or what stands for it where the key is missing or zero.
double read_factor(KeyReader& keys, std::string_view key, double fallback) {
  const double value = keys.optional_float(key, 0.0);
  if (value < 0) keys.fail(make_error(ErrorKind::corrupt, "key '{}' is negative", keys.full(key)));
  return value > 0 ? value : fallback;
}

/// What a family computes without a key, or with a key of its own.
void read_family_scales(KeyReader& keys, ModelConfig& config) {
  const Architecture& family = *config.architecture;
  if (family.embedding_scale_is_root)
    config.embedding_scale = std::sqrt(static_cast<float>(config.hidden_size));
  if (family.has_logit_cap)
    config.logit_cap = static_cast<float>(read_factor(keys, "final_logit_softcapping", 0));
}

/// How, and how much of YaRN's mixing: what `yarn_ext_factor` says, or all of it if the type is
/// "yarn". LongRoPE's own part is in its divisors. Older files give a factor alone, and mean linear
/// scaling.
void read_rope_scaling(KeyReader& keys, RopeConfig& rope) {
  const std::string type = keys.text("rope.scaling.type");
  if (type != "none" && type != "linear" && type != "yarn" && type != "longrope" && !type.empty())
    keys.fail(make_error(ErrorKind::unsupported,
                         "key '{}' is '{}'; supported: none, linear, yarn, longrope",
                         keys.full("rope.scaling.type"), type));
  if (type == "none") rope.factor = 1.0;
  rope.mix = keys.optional_float("rope.scaling.yarn_ext_factor", -1.0);
  if (rope.mix < 0) rope.mix = type == "yarn" ? 1.0 : 0.0;
  if (rope.mix > 0)
    rope.scaling = RopeScaling::yarn;
  else if (rope.factor != 1.0)
    rope.scaling = RopeScaling::linear;
  rope.magnitude = read_factor(keys, "rope.scaling.attn_factor", 1);
  // With mixing, YaRN prescribes it.
  if (rope.mix == 0) rope.magnitude *= read_factor(keys, "rope.scaling.yarn_attn_factor", 1);
}

/// `head_dim` is the most that can be rotated, `kind` how the keys end.
void check_rope(KeyReader& keys, const RopeConfig& rope, uint32_t head_dim, std::string_view kind) {
  if (rope.rotated_dim > head_dim || rope.rotated_dim % 2 != 0)
    keys.fail(make_error(ErrorKind::corrupt, "key '{}{}' is {} for heads of {}",
                         keys.full("rope.dimension_count"), kind, rope.rotated_dim, head_dim));
  if (!(rope.base > 1))
    keys.fail(make_error(ErrorKind::corrupt, "key '{}{}' is not above 1",
                         keys.full("rope.freq_base"), kind));
}

void read_rope(KeyReader& keys, uint32_t head_dim, ModelConfig& config) {
  RopeConfig& rope = config.ropes.emplace_back();
  rope.rotated_dim =
      static_cast<uint32_t>(keys.optional("rope.dimension_count", head_dim, 2, 1024));
  rope.base = keys.optional_float("rope.freq_base", 10000.0);
  check_rope(keys, rope, head_dim, "");
  rope.factor = read_factor(keys, "rope.scaling.factor", read_factor(keys, "rope.scale_linear", 1));
  read_rope_scaling(keys, rope);
  rope.original_context_tokens = static_cast<uint32_t>(
      keys.optional("rope.scaling.original_context_length", 0, 0, uint64_t{1} << 30));
  if (rope.original_context_tokens == 0)
    rope.original_context_tokens = config.context_trained_tokens;
  rope.beta_fast = read_factor(keys, "rope.scaling.yarn_beta_fast", 32);
  rope.beta_slow = read_factor(keys, "rope.scaling.yarn_beta_slow", 1);
}

/// Pairs of elements belong to sections in turn (pair i to i modulo 3), each with a position of its
/// own. A token of text has the same in all three, which is plain rotation, if every pair belongs
/// to one of them; a fourth section has no position.
void check_rope_sections(KeyReader& keys, uint32_t rotated_dim) {
  const std::vector<uint64_t> sections = keys.numbers("rope.dimension_sections");
  if (sections.empty()) return;
  bool plain = sections.size() >= 3 && (sections.size() == 3 || sections[3] == 0);
  for (uint64_t pair = 0; plain && pair < rotated_dim / 2; ++pair)
    plain = pair / 3 < sections[pair % 3];
  if (!plain)
    keys.fail(make_error(ErrorKind::unsupported, "key '{}' leaves pairs of {} without a position",
                         keys.full("rope.dimension_sections"), rotated_dim));
}

void read_swiglu_limits(KeyReader& keys, ModelConfig& config) {
  const auto experts = keys.limit_per_layer("swiglu_clamp_exp", config.layers.size());
  const auto dense = keys.limit_per_layer("swiglu_clamp_shexp", config.layers.size());
  for (size_t i = 0; i < config.layers.size(); ++i) {
    config.layers[i].expert_limit = experts[i];
    config.layers[i].dense_limit = dense[i];
  }
}

/// Which layers have a window: the file may give a number, then it is a period, or a word for each.
std::vector<bool> read_window_pattern(KeyReader& keys, const ModelConfig& config) {
  const size_t layer_count = config.layers.size();
  WindowPattern pattern = config.architecture->windows;
  const std::vector<uint64_t> words = keys.numbers("attention.sliding_window_pattern");
  if (words.size() == 1) pattern.period = static_cast<uint32_t>(std::min(words[0], kSizeMax));
  std::vector<bool> windowed(layer_count);
  if (words.size() > 1 && words.size() < layer_count) {
    keys.fail(make_error(ErrorKind::corrupt, "key '{}' has {} entries for {} layers",
                         keys.full("attention.sliding_window_pattern"), words.size(), layer_count));
    return windowed;
  }
  for (uint32_t i = 0; i < layer_count; ++i)
    windowed[i] = words.size() > 1 ? words[i] != 0 : pattern.is_windowed(i);
  return windowed;
}

/// Layers with a window may be rotated at a pace of their own, and have heads of another size.
void read_windowed_shapes(KeyReader& keys, ModelConfig& config) {
  const auto first = std::ranges::find_if(
      config.layers, [](const LayerConfig& layer) { return layer.window > 0; });
  if (first == config.layers.end()) return;
  const auto key_dim =
      static_cast<uint32_t>(keys.optional("attention.key_length_swa", first->key_dim, 1, 1024));
  const auto value_dim =
      static_cast<uint32_t>(keys.optional("attention.value_length_swa", first->value_dim, 1, 1024));
  RopeConfig rope = config.ropes.front();
  rope.rotated_dim = static_cast<uint32_t>(
      keys.optional("rope.dimension_count_swa", std::min(rope.rotated_dim, key_dim), 2, 1024));
  rope.base = keys.optional_float("rope.freq_base_swa", rope.base);
  check_rope(keys, rope, key_dim, "_swa");
  const bool differs = rope.base != config.ropes.front().base ||
                       rope.rotated_dim != config.ropes.front().rotated_dim;
  if (differs) config.ropes.push_back(rope);
  for (LayerConfig& layer : config.layers) {
    if (layer.window == 0) continue;
    layer.key_dim = key_dim;
    layer.value_dim = value_dim;
    layer.rope = static_cast<uint32_t>(config.ropes.size() - 1);
  }
}

/// Which layers see only a part of the context, and which are not rotated.
void read_windows(KeyReader& keys, ModelConfig& config) {
  const auto window =
      static_cast<uint32_t>(keys.optional("attention.sliding_window", 0, 0, uint64_t{1} << 30));
  const Architecture& family = *config.architecture;
  if (window > 0 && family.windows.period == 0)
    keys.fail(make_error(ErrorKind::unsupported,
                         "key '{}' asks for something that this version does not implement for {}",
                         keys.full("attention.sliding_window"), family.name));
  if (window == 0 || family.windows.period == 0) return;
  const std::vector<bool> windowed = read_window_pattern(keys, config);
  for (size_t i = 0; i < config.layers.size(); ++i) {
    if (windowed[i]) config.layers[i].window = window;
    if (family.full_layers_are_unrotated) config.layers[i].is_rotated = windowed[i];
  }
  read_windowed_shapes(keys, config);
}

void read_attention(KeyReader& keys, ModelConfig& config) {
  const size_t layer_count = config.layers.size();
  const auto heads = keys.per_layer("attention.head_count", layer_count);
  const Architecture& family = *config.architecture;
  const bool recurs = family.recurrence != MixerKind::attention;
  const auto kv_heads = keys.per_layer("attention.head_count_kv", layer_count, recurs ? 0 : 1);
  for (size_t i = 0; i < layer_count; ++i) {
    config.layers[i] = {.mixer = kv_heads[i] > 0 ? family.mixer : family.recurrence,
                        .head_count = heads[i],
                        .kv_head_count = kv_heads[i],
                        .is_rotated = family.is_rotated};
    if (kv_heads[i] > 0 && heads[i] % kv_heads[i] != 0)
      keys.fail(make_error(ErrorKind::corrupt, "layer {} has {} heads over {} key/value heads", i,
                           heads[i], kv_heads[i]));
  }
  const uint64_t default_dim = std::max<uint64_t>(1, config.hidden_size / heads[0]);
  const auto key_dim =
      static_cast<uint32_t>(keys.optional("attention.key_length", default_dim, 1, 1024));
  const auto value_dim =
      static_cast<uint32_t>(keys.optional("attention.value_length", key_dim, 1, 1024));
  for (LayerConfig& layer : config.layers) {
    layer.key_dim = key_dim;
    layer.value_dim = value_dim;
  }
  if (family.has_gated_attention && key_dim != value_dim)
    keys.fail(make_error(ErrorKind::unsupported, "keys of {} beside gated values of {}", key_dim,
                         value_dim));
  const float scale = family.attention_scale;
  config.attention_scale = scale > 0 ? scale : 1.0f / std::sqrt(static_cast<float>(key_dim));
}

/// The layers whose mixer is a short convolution remember the inputs of the last tokens.
void read_short_convolution(KeyReader& keys, ModelConfig& config) {
  config.convolution_width = static_cast<uint32_t>(keys.required("shortconv.l_cache", 64));
  for (LayerConfig& layer : config.layers)
    if (layer.mixer == MixerKind::short_convolution)
      layer.state_floats = (config.convolution_width - 1) * config.hidden_size;
}

uint32_t read_latent_dim(KeyReader& keys, std::string_view key) {
  return static_cast<uint32_t>(keys.required(key, 8192));
}

/// Older files give the sizes of a head where newer ones give those of what is cached.
LatentConfig read_latent_dims(KeyReader& keys, uint32_t rotated_dim) {
  LatentConfig latent;
  latent.query_rank = static_cast<uint32_t>(keys.optional("attention.q_lora_rank", 0, 0, kSizeMax));
  latent.latent_dim = read_latent_dim(keys, "attention.kv_lora_rank");
  const bool newer = keys.optional("attention.key_length_mla", 0, 0, 8192) > 0;
  const uint32_t query_dim =
      read_latent_dim(keys, newer ? "attention.key_length_mla" : "attention.key_length");
  latent.value_dim =
      read_latent_dim(keys, newer ? "attention.value_length_mla" : "attention.value_length");
  latent.rotated_dim = rotated_dim;
  if (query_dim <= rotated_dim)
    keys.fail(make_error(ErrorKind::corrupt, "{} of {} dimensions of a head are rotated",
                         rotated_dim, query_dim));
  else
    latent.unrotated_dim = query_dim - rotated_dim;
  return latent;
}

/// The layers with latent attention: what they cache is one key and value for all heads.
void read_latent_attention(KeyReader& keys, ModelConfig& config) {
  RopeConfig& rope = config.ropes.front();
  config.latent = read_latent_dims(keys, rope.rotated_dim);
  for (LayerConfig& layer : config.layers) {
    if (layer.mixer != MixerKind::latent_attention) continue;
    layer.kv_head_count = 1;
    layer.key_dim = config.latent.key_dim();
    layer.value_dim = config.latent.latent_dim;
  }
  // With a multiplier, what YaRN does to the rotated part it does to all of a product of query and
  // key: not cosine and sine grow, but the scale, by the square.
  const double multiplier = keys.optional_float("rope.scaling.yarn_log_multiplier", 0.0);
  rope.keeps_magnitude = multiplier != 0.0;
  const double growth =
      rope.scaling == RopeScaling::yarn ? 1.0 + multiplier * std::log(rope.factor) : 1.0;
  config.attention_scale =
      static_cast<float>(growth * growth / std::sqrt(config.latent.query_dim()));
}

void read_temperature(KeyReader& keys, ModelConfig& config) {
  config.temperature.scale = keys.optional_float("attention.temperature_scale", 0.0);
  config.temperature.length = static_cast<uint32_t>(keys.optional(
      "attention.temperature_length", config.context_trained_tokens, 1, uint64_t{1} << 30));
}

bool has_selection_bias(const gguf::GgufFile& file) {
  return std::ranges::any_of(file.tensors(), [](const gguf::Tensor& tensor) {
    return tensor.name.ends_with("exp_probs_b.bias");
  });
}

}  // namespace

float QueryTemperature::factor(size_t position) const {
  return static_cast<float>(1.0 + scale * std::log1p(static_cast<double>(position / length)));
}

Result<ModelConfig> read_config(const gguf::GgufFile& file, const Log& log) {
  const auto architecture_name = file.find_text("general.architecture");
  if (!architecture_name) return architecture_name.error();
  if (!architecture_name->has_value())
    return make_error(ErrorKind::corrupt, "key 'general.architecture' is missing");
  const Architecture* architecture = find_architecture(**architecture_name);
  if (architecture == nullptr)
    return make_error(ErrorKind::unsupported, "architecture '{}' is not supported; supported: {}",
                      **architecture_name, supported_architectures());
  if (const auto keys_known = check_keys(file, *architecture, log); !keys_known)
    return keys_known.error();

  ModelConfig config;
  config.architecture = architecture;
  if (const auto name = file.find_text("general.name"); name.ok() && name->has_value())
    config.name = **name;
  KeyReader keys(file, architecture->name);
  config.hidden_size = static_cast<uint32_t>(keys.required("embedding_length", kSizeMax));
  config.context_trained_tokens =
      static_cast<uint32_t>(keys.required("context_length", uint64_t{1} << 30));
  const uint64_t block_count = keys.required("block_count", kLayerCountMax);
  const uint64_t next_token_layers = keys.optional("nextn_predict_layers", 0, 0, kLayerCountMax);
  if (next_token_layers >= block_count)
    keys.fail(make_error(ErrorKind::corrupt, "key '{}' leaves no layers",
                         keys.full("nextn_predict_layers")));
  else
    config.layers.resize(block_count - next_token_layers);
  if (keys.error()) return *keys.error();
  config.rms_epsilon =
      static_cast<float>(keys.optional_float("attention.layer_norm_rms_epsilon", 1e-6));
  if (config.rms_epsilon < 0)
    keys.fail(make_error(ErrorKind::corrupt, "key '{}' is negative",
                         keys.full("attention.layer_norm_rms_epsilon")));
  read_experts(keys, config);
  // Files of DeepSeek-V2's and GLM-4.7-Flash's kind name no function alike; only with sigmoids is
  // there a bias for choosing.
  const bool names_function = keys.optional("expert_gating_func", 0, 0, kSizeMax) != 0;
  if (architecture->mixer == MixerKind::latent_attention && !names_function &&
      has_selection_bias(file))
    config.gating.function = GatingFunction::sigmoid;
  read_attention(keys, config);
  read_rope(keys, config.layers.front().key_dim, config);
  if (architecture->has_rope_sections) check_rope_sections(keys, config.ropes.front().rotated_dim);
  if (architecture->delta != DeltaForm::none) read_delta_net(keys, config);
  if (architecture->mixer == MixerKind::latent_attention) read_latent_attention(keys, config);
  if (architecture->recurrence == MixerKind::short_convolution)
    read_short_convolution(keys, config);
  read_windows(keys, config);
  if (architecture->has_scales) read_scales(keys, config);
  read_family_scales(keys, config);
  if (architecture->has_temperature) read_temperature(keys, config);
  if (architecture->has_swiglu_limits) read_swiglu_limits(keys, config);
  if (keys.error()) return *keys.error();
  return config;
}

std::string describe_router(const ModelConfig& config) {
  if (config.expert_count == 0) return "none, all layers are dense";
  const GatingRule& rule = config.gating;
  std::string groups;
  if (rule.group_count > 1)
    groups =
        fmt::format(" in {} groups ({} of them eligible)", rule.group_count, rule.group_used_count);
  constexpr std::string_view kFunctions[] = {"softmax", "sigmoid", "softmax of those chosen"};
  return fmt::format("{} over {} experts{}, {} used{}, scale {}",
                     kFunctions[static_cast<size_t>(rule.function) - 1], config.expert_count,
                     groups, config.expert_used_count,
                     rule.renormalise ? ", weights renormalised" : "", rule.scale);
}

}  // namespace sluice
