#include "model/config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace sluice {
namespace {

// No model has, or will have, more than this; a file that says so is broken, and the products of
// these stay far below 2^64.
constexpr uint64_t kSizeMax = uint64_t{1} << 24;
constexpr uint64_t kLayerCountMax = 4096;

/// Keys (after "<architecture>.") that change the arithmetic in ways not implemented for the
/// families of the table. A value that switches the feature off is harmless.
constexpr std::array<std::string_view, 12> kUnimplementedKeys{"attention.sliding_window",
                                                              "attention.clamp_kqv",
                                                              "attention.max_alibi_bias",
                                                              "attention.scale",
                                                              "attn_logit_softcapping",
                                                              "final_logit_softcapping",
                                                              "logit_scale",
                                                              "residual_scale",
                                                              "embedding_scale",
                                                              "expert_shared_count",
                                                              "expert_group_count",
                                                              "leading_dense_block_count"};

/// Keys that are read below, or describe the file without changing the arithmetic.
constexpr std::array<std::string_view, 23> kKnownKeys{"block_count",
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
                                                      "nextn_predict_layers"};

/// Reads the keys of one architecture, remembering the first failure so that the code below can
/// read one key after the other and ask once.
class KeyReader {
 public:
  KeyReader(const gguf::GgufFile& file, std::string_view prefix)
      : file_(file), prefix_(fmt::format("{}.", prefix)) {}

  std::string full(std::string_view key) const { return prefix_ + std::string(key); }

  uint64_t required(std::string_view key, uint64_t max) {
    const auto value = find(key, 1, max);
    if (!value) fail(make_error(ErrorKind::corrupt, "key '{}' is missing", full(key)));
    return value.value_or(1);
  }

  uint64_t optional(std::string_view key, uint64_t fallback, uint64_t min, uint64_t max) {
    return find(key, min, max).value_or(fallback);
  }

  double optional_float(std::string_view key, double fallback) {
    auto value = file_.find_float(full(key));
    if (!value) fail(value.error());
    const double number = value.ok() ? value->value_or(fallback) : fallback;
    if (!std::isfinite(number) || std::abs(number) > std::numeric_limits<float>::max())
      fail(make_error(ErrorKind::corrupt, "key '{}' is not a usable number", full(key)));
    return number;
  }

  std::optional<bool> find_bool(std::string_view key) {
    auto value = file_.find_bool(full(key));
    if (!value) fail(value.error());
    return value.ok() ? *value : std::nullopt;
  }

  /// One value per layer from a scalar or an array; surplus entries (next-token layers) are left.
  std::vector<uint32_t> per_layer(std::string_view key, size_t layer_count) {
    auto values = file_.find_uints(full(key));
    if (!values) fail(values.error());
    std::vector<uint32_t> result(layer_count, 1);
    if (!values) return result;
    if (values->empty())
      fail(make_error(ErrorKind::corrupt, "key '{}' is missing or empty", full(key)));
    else if (values->size() != 1 && values->size() < layer_count)
      fail(make_error(ErrorKind::corrupt, "key '{}' has {} entries for {} layers", full(key),
                      values->size(), layer_count));
    if (error_) return result;
    for (size_t i = 0; i < layer_count; ++i) {
      const uint64_t value = values->size() == 1 ? values->front() : (*values)[i];
      if (value == 0 || value > kSizeMax)
        fail(make_error(ErrorKind::corrupt, "key '{}' is {} for layer {}", full(key), value, i));
      else
        result[i] = static_cast<uint32_t>(value);
    }
    return result;
  }

  void fail(Error error) {
    if (!error_) error_ = std::move(error);
  }
  const std::optional<Error>& error() const { return error_; }

 private:
  std::optional<uint64_t> find(std::string_view key, uint64_t min, uint64_t max) {
    auto value = file_.find_uint(full(key));
    if (!value) {
      fail(value.error());
      return std::nullopt;
    }
    if (value->has_value() && (**value < min || **value > max)) {
      fail(make_error(ErrorKind::corrupt, "key '{}' is {}, expected {} to {}", full(key), **value,
                      min, max));
      return std::nullopt;  // nobody may compute with it
    }
    return *value;
  }

  const gguf::GgufFile& file_;
  const std::string prefix_;
  std::optional<Error> error_;
};

/// Whether a feature's key says "off": zero, false, or empty.
bool is_off(const gguf::Value& value) {
  if (const auto* number = std::get_if<uint64_t>(&value)) return *number == 0;
  if (const auto* number = std::get_if<int64_t>(&value)) return *number == 0;
  if (const auto* number = std::get_if<double>(&value)) return *number == 0.0;
  if (const auto* flag = std::get_if<bool>(&value)) return !*flag;
  return false;
}

Status check_keys(const gguf::GgufFile& file, std::string_view architecture, const Log& log) {
  const std::string prefix = fmt::format("{}.", architecture);
  for (const auto& [key, value] : file.values()) {
    if (!key.starts_with(prefix)) continue;
    const std::string_view rest = std::string_view(key).substr(prefix.size());
    if (std::ranges::find(kUnimplementedKeys, rest) != kUnimplementedKeys.end()) {
      if (!is_off(value))
        return make_error(ErrorKind::unsupported,
                          "key '{}' asks for something that this version "
                          "does not implement for {}",
                          key, architecture);
    } else if (std::ranges::find(kKnownKeys, rest) == kKnownKeys.end()) {
      log.info("note: key '{}' is unknown and ignored", key);
    }
  }
  const auto scaling = file.find_text(prefix + "rope.scaling.type");
  if (!scaling) return scaling.error();
  if (scaling->has_value() && **scaling != "none")
    return make_error(ErrorKind::unsupported, "key '{}rope.scaling.type' is '{}'; supported: none",
                      prefix, **scaling);
  // Older files give a factor alone, and mean linear scaling.
  for (const std::string_view key : {"rope.scaling.factor", "rope.scale_linear"}) {
    const auto factor = file.find_float(prefix + std::string(key));
    if (!factor) return factor.error();
    if (!scaling->has_value() && factor->value_or(1.0) != 1.0 && factor->value_or(0.0) != 0.0)
      return make_error(ErrorKind::unsupported, "key '{}{}' is {}; supported: no scaling", prefix,
                        key, **factor);
  }
  return {};
}

GatingRule read_gating(const Architecture& architecture, KeyReader& keys) {
  GatingRule rule = architecture.gating;
  const auto function =
      keys.optional("expert_gating_func", static_cast<uint64_t>(rule.function), 0, kSizeMax);
  if (function != static_cast<uint64_t>(rule.function))
    keys.fail(make_error(ErrorKind::unsupported, "key '{}' is {}; supported for {}: {}",
                         keys.full("expert_gating_func"), function, architecture.name,
                         static_cast<uint64_t>(rule.function)));
  if (const auto renormalise = keys.find_bool("expert_weights_norm"))
    rule.renormalise = *renormalise;
  const double scale = keys.optional_float("expert_weights_scale", 0.0);
  if (scale != 0.0) rule.scale = static_cast<float>(scale);  // absent or zero means 1
  return rule;
}

void read_attention(KeyReader& keys, ModelConfig& config) {
  const size_t layer_count = config.layers.size();
  const auto heads = keys.per_layer("attention.head_count", layer_count);
  const auto kv_heads = keys.per_layer("attention.head_count_kv", layer_count);
  for (size_t i = 0; i < layer_count; ++i) {
    config.layers[i] = {.head_count = heads[i], .kv_head_count = kv_heads[i]};
    if (heads[i] % kv_heads[i] != 0)
      keys.fail(make_error(ErrorKind::corrupt, "layer {} has {} heads over {} key/value heads", i,
                           heads[i], kv_heads[i]));
  }
  const uint64_t default_dim = std::max<uint64_t>(1, config.hidden_size / heads[0]);
  config.head_dim =
      static_cast<uint32_t>(keys.optional("attention.key_length", default_dim, 1, 1024));
  const uint64_t value_dim = keys.optional("attention.value_length", config.head_dim, 1, 1024);
  if (value_dim != config.head_dim)
    keys.fail(make_error(ErrorKind::unsupported, "key '{}' differs from the key length",
                         keys.full("attention.value_length")));
  config.rotated_dim =
      static_cast<uint32_t>(keys.optional("rope.dimension_count", config.head_dim, 2, 1024));
  if (config.rotated_dim > config.head_dim || config.rotated_dim % 2 != 0)
    keys.fail(make_error(ErrorKind::corrupt, "key '{}' is {} for heads of {}",
                         keys.full("rope.dimension_count"), config.rotated_dim, config.head_dim));
  config.rope_base = keys.optional_float("rope.freq_base", 10000.0);
  if (!(config.rope_base > 0))
    keys.fail(
        make_error(ErrorKind::corrupt, "key '{}' is not positive", keys.full("rope.freq_base")));
}

}  // namespace

Result<ModelConfig> read_config(const gguf::GgufFile& file, const Log& log) {
  const auto architecture_name = file.find_text("general.architecture");
  if (!architecture_name) return architecture_name.error();
  if (!architecture_name->has_value())
    return make_error(ErrorKind::corrupt, "key 'general.architecture' is missing");
  const Architecture* architecture = find_architecture(**architecture_name);
  if (architecture == nullptr)
    return make_error(ErrorKind::unsupported, "architecture '{}' is not supported; supported: {}",
                      **architecture_name, supported_architectures());
  if (const auto keys_known = check_keys(file, architecture->name, log); !keys_known)
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
  config.expert_count = static_cast<uint32_t>(keys.required("expert_count", 65536));
  config.expert_used_count = static_cast<uint32_t>(keys.required("expert_used_count", 1024));
  config.expert_hidden_size =
      static_cast<uint32_t>(keys.required("expert_feed_forward_length", kSizeMax));
  if (config.expert_used_count > config.expert_count)
    keys.fail(make_error(ErrorKind::corrupt, "{} of {} experts used per token",
                         config.expert_used_count, config.expert_count));
  config.gating = read_gating(*architecture, keys);
  read_attention(keys, config);
  if (keys.error()) return *keys.error();
  return config;
}

std::string describe_router(const ModelConfig& config) {
  return fmt::format("{} over {} experts, {} used{}, scale {}",
                     config.gating.function == GatingFunction::softmax ? "softmax" : "sigmoid",
                     config.expert_count, config.expert_used_count,
                     config.gating.renormalise ? ", weights renormalised" : "",
                     config.gating.scale);
}

}  // namespace sluice
