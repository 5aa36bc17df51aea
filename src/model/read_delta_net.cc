#include "model/read_delta_net.h"

namespace sluice {
namespace {

constexpr uint64_t kHeadDimMax = 256;
constexpr uint64_t kHeadCountMax = 1024;
constexpr uint64_t kConvolutionMax = 16;

uint32_t read_size(KeyReader& keys, std::string_view key, uint64_t max) {
  return static_cast<uint32_t>(keys.required(key, max));
}

void read_gated_delta_net(KeyReader& keys, DeltaConfig& delta) {
  delta.key_dim = delta.value_dim = read_size(keys, "ssm.state_size", kHeadDimMax);
  delta.key_head_count = read_size(keys, "ssm.group_count", kHeadCountMax);
  delta.value_head_count = read_size(keys, "ssm.time_step_rank", kHeadCountMax);
  const uint32_t inner = read_size(keys, "ssm.inner_size", kSizeMax);
  if (inner != delta.value_channels() || delta.value_head_count % delta.key_head_count != 0)
    keys.fail(make_error(ErrorKind::corrupt,
                         "{} value heads of {} over {} key heads do not make '{}' = {}",
                         delta.value_head_count, delta.value_dim, delta.key_head_count,
                         keys.full("ssm.inner_size"), inner));
}

void read_kimi_delta(KeyReader& keys, uint32_t head_count, DeltaConfig& delta) {
  delta.key_dim = delta.value_dim = read_size(keys, "kda.head_dim", kHeadDimMax);
  delta.key_head_count = delta.value_head_count = head_count;
  if (head_count > kHeadCountMax)
    keys.fail(make_error(ErrorKind::corrupt, "key '{}' is {}, expected 1 to {}",
                         keys.full("attention.head_count"), head_count, kHeadCountMax));
  delta.decay_bound = static_cast<float>(keys.optional_float("kda.gate_lower_bound", 0.0));
  const bool is_bounded = keys.find_bool("kda.safe_gate").value_or(delta.decay_bound != 0.0f);
  if (is_bounded != (delta.decay_bound < 0.0f))
    keys.fail(make_error(ErrorKind::unsupported,
                         "key '{}' is {} beside '{}' = {}; a decay is bounded by both or by none",
                         keys.full("kda.safe_gate"), is_bounded, keys.full("kda.gate_lower_bound"),
                         delta.decay_bound));
}

/// Per layer: the key says it, or all but every so many-th layer.
std::vector<uint64_t> recurrent_by_key(KeyReader& keys, size_t layer_count) {
  std::vector<uint64_t> recurrent = keys.numbers("attention.recurrent_layers");
  if (recurrent.size() >= layer_count) return recurrent;
  if (!recurrent.empty())
    keys.fail(make_error(ErrorKind::corrupt, "key '{}' has {} entries for {} layers",
                         keys.full("attention.recurrent_layers"), recurrent.size(), layer_count));
  const uint64_t interval = keys.optional("full_attention_interval", 4, 1, kSizeMax);
  recurrent.resize(layer_count);
  for (size_t i = 0; i < layer_count; ++i) recurrent[i] = (i + 1) % interval != 0 ? 1 : 0;
  return recurrent;
}

}  // namespace

void read_delta_net(KeyReader& keys, ModelConfig& config) {
  DeltaConfig& delta = config.delta;
  const bool is_kda = config.architecture->delta == DeltaForm::kda;
  if (is_kda)
    read_kimi_delta(keys, config.layers.front().head_count, delta);
  else
    read_gated_delta_net(keys, delta);
  delta.convolution_width = read_size(keys, "ssm.conv_kernel", kConvolutionMax);
  if (keys.error()) return;
  const auto recurrent =
      is_kda ? std::vector<uint64_t>() : recurrent_by_key(keys, config.layers.size());
  for (size_t i = 0; i < config.layers.size(); ++i) {
    LayerConfig& layer = config.layers[i];
    if (is_kda ? layer.mixer != MixerKind::delta_net : recurrent[i] == 0) continue;
    if (is_kda && layer.head_count != delta.value_head_count)
      keys.fail(make_error(ErrorKind::corrupt,
                           "recurrent layer {} has {} heads, the first layer {}", i,
                           layer.head_count, delta.value_head_count));
    layer.mixer = MixerKind::delta_net;
    layer.kv_head_count = 0;
    layer.state_floats = delta.state_floats();
  }
}

}  // namespace sluice
