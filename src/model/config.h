// The hyper-parameters of a model, read from its file's keys, checked, and completed by the
// architecture's defaults. Everything that varies by layer is per layer here, whether the file
// gives a scalar or an array. Immutable after reading; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "gguf/gguf_file.h"
#include "model/architecture.h"
#include "model/rope.h"

namespace sluice {

struct LayerConfig {
  MixerKind mixer = MixerKind::attention;
  uint32_t head_count = 0;     ///< query heads
  uint32_t kv_head_count = 0;  ///< key/value heads; divides head_count
  uint32_t key_dim = 0;        ///< of queries, and of keys as the KV cache has them
  uint32_t value_dim = 0;      ///< of values as the KV cache has them, and of what a head gives
  uint32_t window = 0;         ///< the last so many positions are seen; 0: all
  bool is_rotated = true;
  uint32_t rope = 0;          ///< which of ModelConfig::ropes
  uint32_t state_floats = 0;  ///< of a running state, in place of keys and values
};

/// Multi-head latent attention; see backend/cpu/latent_attention.h.
struct LatentConfig {
  uint32_t query_rank = 0;     ///< queries are made of so many numbers; 0: of the layer's input
  uint32_t latent_dim = 0;     ///< what keys and values of all heads are made of
  uint32_t unrotated_dim = 0;  ///< of a head's query and key
  uint32_t rotated_dim = 0;    ///< likewise; this part of a key is the same for all heads
  uint32_t value_dim = 0;      ///< of a head

  uint32_t query_dim() const { return unrotated_dim + rotated_dim; }
  uint32_t key_dim() const { return latent_dim + rotated_dim; }  ///< as cached
};

/// Queries far behind are made larger, so that attention stays as sharp over many keys: by
/// 1 + scale · ln(1 + ⌊position / length⌋).
struct QueryTemperature {
  double scale = 0.0;
  uint32_t length = 1;

  float factor(size_t position) const;
};

struct ModelConfig {
  const Architecture* architecture = nullptr;
  std::string name;  ///< `general.name`, may be empty

  uint32_t hidden_size = 0;
  uint32_t vocabulary_size = 0;  ///< rows of the embedding
  uint32_t context_trained_tokens = 0;
  float rms_epsilon = 1e-6f;

  LatentConfig latent;            ///< of layers with latent attention
  std::vector<RopeConfig> ropes;  ///< at least one
  QueryTemperature temperature;

  float embedding_scale = 1.0f;  ///< times a token's embedding
  float residual_scale = 1.0f;   ///< times what a block adds to the residual stream
  float attention_scale = 0.0f;  ///< times the products of queries and keys
  float logit_scale = 1.0f;      ///< the logits are divided by it
  float logit_cap = 0.0f;        ///< x becomes cap · tanh(x / cap); 0: stays as it is

  uint32_t expert_count = 0;        ///< per MoE layer
  uint32_t expert_used_count = 0;   ///< k
  uint32_t expert_hidden_size = 0;  ///< rows of gate and up
  GatingRule gating;

  std::vector<LayerConfig> layers;

  size_t layer_count() const { return layers.size(); }
};

/// Errors name the key and what is supported. A key of this architecture that we know to change the
/// arithmetic and do not implement stops the load; one that we have never heard of is logged.
Result<ModelConfig> read_config(const gguf::GgufFile& file, const Log& log);

/// "softmax over 128 experts, 8 used, renormalised": the resolved router, printed at load.
std::string describe_router(const ModelConfig& config);

}  // namespace sluice
