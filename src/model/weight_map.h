// Which tensor plays which part: from the names in a file to the weights the forward pass uses.
// Everything but the routed experts is *dense*: resident for the life of the model. Shapes and
// formats are checked here, once, so that nothing later has to ask. Filled by plan_weights(), given
// data by engine/loader, immutable afterwards.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "gguf/gguf_file.h"
#include "model/config.h"
#include "model/expert_layout.h"
#include "model/matrix.h"
#include "model/transposed_weights.h"

namespace sluice {

/// A weight matrix and what is added to its products.
struct Projection {
  Matrix weight;
  Matrix bias;  ///< [1][rows of weight]; absent: nothing
};

/// A gated FFN that is always in memory. Its matrices are seen as those of an expert that every
/// token chooses. Absent where a layer has none.
struct DenseFfn {
  Matrix gate;  ///< [width][hidden]
  Matrix up;    ///< [width][hidden]
  Matrix down;  ///< [hidden][width]

  bool present() const { return down.present(); }
  ExpertView view() const { return {gate, up, down}; }
};

/// What is added to the products of the routed experts' matrices; a row for each expert. They are
/// small, and always in memory. Absent: nothing.
struct ExpertBiases {
  Matrix gate;  ///< [experts][expert_hidden_size]
  Matrix up;    ///< [experts][expert_hidden_size]
  Matrix down;  ///< [experts][hidden]
};

/// Attention with a key and a value for each KV head.
struct AttentionWeights {
  Projection query;   ///< [heads · key_dim][hidden]
  Projection key;     ///< [kv_heads · key_dim][hidden]
  Projection value;   ///< [kv_heads · value_dim][hidden]; absent: what `key` gives
  Projection output;  ///< [hidden][heads · value_dim]
  Matrix query_norm;  ///< [1][key_dim], or of all heads; may be absent
  Matrix key_norm;    ///< likewise
  Matrix sinks;       ///< [1][heads]: a score each without a value; may be absent
};

/// Multi-head latent attention; see backend/cpu/latent_attention.h. Older files have one matrix
/// that makes keys and values, head by head; key_up is then its rows for keys, transposed.
struct LatentWeights {
  Matrix query_down;       ///< [query_rank][hidden]; may be absent
  Matrix query_down_norm;  ///< [1][query_rank]
  Matrix query;            ///< [heads · query_dim][query_rank, or hidden]
  Matrix latent_down;      ///< [latent_dim + rotated_dim][hidden]
  Matrix latent_norm;      ///< [1][latent_dim]
  Matrix key_value_up;     ///< [heads · (unrotated_dim + value_dim)][latent_dim]; may be absent
  Matrix key_up;           ///< [heads · latent_dim][unrotated_dim]
  Matrix value_up;         ///< [heads · value_dim][latent_dim]; absent if key_value_up is there
  Projection output;       ///< [hidden][heads · value_dim]

  /// Among others the rows that make values; they are the last of each head's.
  const Matrix& value_rows() const { return key_value_up.present() ? key_value_up : value_up; }
};

/// All norms are [1][hidden]. Those *after* a part normalise what it gives, before it is added to
/// anything; any of them may be absent.
struct LayerWeights {
  Matrix mixer_norm;
  AttentionWeights attention;
  LatentWeights latent;
  Matrix norm_after_mixer;
  Matrix ffn_norm;      ///< of what every token passes, and of what experts see
  Matrix experts_norm;  ///< of what experts see, in place of it; may be absent
  Matrix norm_after_experts;
  Matrix norm_after_shared;
  Matrix norm_after_ffn;  ///< of the sum of both
  Matrix output_scale;    ///< [1][1], times the hidden state that leaves the layer; may be absent

  Matrix router;       ///< [experts][hidden]; absent in a dense layer
  Matrix router_norm;  ///< of what the router sees, over √hidden; absent: it sees what experts see
  Matrix router_bias;     ///< [1][experts], added to the logits; may be absent
  Matrix selection_bias;  ///< [1][experts], added to the scores for choosing only; may be absent
  ExpertBiases expert_biases;
  Matrix expert_scales;  ///< [1][experts], times what each gives; may be absent
  DenseFfn shared;       ///< the shared expert, several side by side, or a dense FFN; may be absent
  Matrix shared_gate;    ///< [1][hidden]: how much of it each token gets; absent: all
  DenseFfn ffn;          ///< of a dense layer

  /// What a token passes without asking a router.
  const DenseFfn& dense_ffn() const { return ffn.present() ? ffn : shared; }
  const Matrix& norm_before_experts() const {
    return experts_norm.present() ? experts_norm : ffn_norm;
  }
};

struct DenseWeights {
  Matrix embedding;  ///< [vocabulary][hidden]
  /// [1][rotated_dim / 2] of the first of ModelConfig::ropes, see model/rope.h; may be absent.
  Matrix rope_divisors;
  Matrix rope_divisors_long;  ///< in place of them in contexts beyond the original one
  Matrix output_norm;         ///< [1][hidden]
  Matrix output;              ///< [vocabulary][hidden]; the embedding where the file has no head
  std::vector<LayerWeights> layers;

  /// Those for a context of so many tokens.
  const Matrix& divisors_for(const ModelConfig& config, size_t context_tokens) const;
};

/// A dense tensor and the matrix that waits for its data.
struct DenseTensor {
  std::string name;
  FileExtent extent;
  Matrix* matrix;  ///< inside the same WeightMap
};

struct WeightMap {
  DenseWeights dense;
  std::vector<DenseTensor> dense_tensors;  ///< each once; a tied head is not a tensor
  std::vector<TransposedWeights> transposed;
  bool output_is_embedding = false;
  std::vector<ExpertLayout> experts;  ///< per layer

  /// Of the first layer that has experts.
  const ExpertLayout& first_experts() const;

  uint64_t dense_bytes() const;  ///< what is transposed included
  uint64_t transposed_bytes() const;
  /// Fills so many bytes with what is transposed. REQUIRES: every dense tensor has its data.
  void transpose_weights(std::byte* memory) const;
  uint64_t expert_bytes() const;  ///< of all experts of all layers
  /// Expert bytes that one token uses, B in docs/streaming.md.
  uint64_t expert_bytes_per_token(const ModelConfig& config) const;
  /// Dense bytes that one token reads: all but the embedding, of which it reads a row.
  uint64_t dense_bytes_per_token() const;
};

/// Finds and checks every tensor. Errors name the tensor, what it is and what was expected.
/// Sets config.vocabulary_size. Tensors that no part of the forward pass uses are left on the
/// drive.
Result<std::unique_ptr<WeightMap>> plan_weights(const gguf::GgufFile& file, ModelConfig& config);

}  // namespace sluice
