// The architecture table: one row per model family, saying which variant of each building block it
// uses. What a file's keys can override (model/config.h) is a default here, and what a file's
// tensors say by being there needs no word: a bias, a shared expert, a layer without experts.
// Supporting a family means adding a row, and a building block only where the family needs a new
// one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sluice {

/// How router logits become mixing weights; the numbers are those of `expert_gating_func`.
enum class GatingFunction : uint8_t {
  softmax = 1,
  sigmoid = 2,
  softmax_of_chosen = 3,  ///< experts are chosen by their logits, and only theirs enter the softmax
};

/// What a layer does between its tokens.
enum class MixerKind : uint8_t { attention, latent_attention };
inline constexpr size_t kMixerKindCount = 2;

/// Where query and key are normalised.
enum class QueryKeyNorm : uint8_t {
  none,
  per_head,
  per_head_if_present,  ///< files of one family may or may not have the weights
  rotated_per_head,     ///< after rotation
  whole,                ///< all heads of a token as one row
};

/// Which elements of a head are rotated together.
enum class RopeKind : uint8_t {
  neox,      ///< element i with i + rotated/2
  adjacent,  ///< element 2i with 2i + 1
};

/// What becomes of gate and up in an FFN.
enum class FfnActivation : uint8_t {
  silu,         ///< silu(gate) · up
  gelu,         ///< gelu(gate) · up
  relu,         ///< max(gate, 0) · up
  clamped_silu  ///< gpt-oss: see swiglu_clamped in kernels/kernels.h
};

/// Which layers see only a window of `attention.sliding_window` positions, where the file does not
/// say: all but one of each `period`, the last or the first; 0: the family has no such layers.
struct WindowPattern {
  uint32_t period = 0;
  bool full_first = false;

  bool is_windowed(uint32_t layer) const {
    return period != 0 && layer % period != (full_first ? 0 : period - 1);
  }
};

inline constexpr uint32_t kGroupsMax = 64;

struct GatingRule {
  GatingFunction function = GatingFunction::softmax;
  bool renormalise = true;        ///< the chosen weights are divided by their sum
  float scale = 1.0f;             ///< applied last
  uint32_t group_count = 1;       ///< at most kGroupsMax
  uint32_t group_used_count = 1;  ///< only experts of so many groups can be chosen
};

struct Architecture {
  std::string_view name;  ///< `general.architecture`
  MixerKind mixer = MixerKind::attention;
  GatingRule gating{};
  QueryKeyNorm query_key_norm = QueryKeyNorm::none;
  RopeKind rope = RopeKind::neox;
  std::string_view ffn_norm = "ffn_norm";  ///< the tensor that normalises the input of the FFN
  /// Whether the file's factors on embedding, residual, attention and logits apply.
  bool has_scales = false;
  /// Rows of an expert's gate where the file has no `expert_feed_forward_length`.
  bool expert_width_is_ffn_width = false;
  FfnActivation activation = FfnActivation::silu;
  WindowPattern windows{};
  bool full_layers_are_unrotated = false;  ///< those without a window
  bool router_sees_layer_input = false;    ///< in place of the FFN's
  bool has_temperature = false;            ///< queries grow with their position
  float attention_scale = 0.0f;            ///< of query · key; 0: 1/√key_dim
  bool embedding_scale_is_root = false;    ///< √hidden_size times a token's embedding
  bool values_are_normalised = false;      ///< per head, without a weight
  bool keys_serve_as_values = false;       ///< as projected, in layers that have no `attn_v`
  bool has_logit_cap = false;              ///< logits are bent below a limit
};

/// Null when the family is not supported.
const Architecture* find_architecture(std::string_view name);

/// "qwen3moe, …", for messages.
std::string supported_architectures();

}  // namespace sluice
