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
  Projection value;   ///< [kv_heads · value_dim][hidden]
  Projection output;  ///< [hidden][heads · value_dim]
  Matrix query_norm;  ///< [1][key_dim], or of all heads; may be absent
  Matrix key_norm;    ///< likewise
  Matrix sinks;       ///< [1][heads]: a score each without a value; may be absent
};

struct LayerWeights {
  Matrix mixer_norm;  ///< [1][hidden]
  AttentionWeights attention;
  Matrix ffn_norm;  ///< [1][hidden]

  Matrix router;          ///< [experts][hidden]; absent in a dense layer
  Matrix router_bias;     ///< [1][experts], added to the logits; may be absent
  Matrix selection_bias;  ///< [1][experts], added to the scores for choosing only; may be absent
  ExpertBiases expert_biases;
  DenseFfn shared;     ///< the shared expert, or several side by side; may be absent
  Matrix shared_gate;  ///< [1][hidden]: how much of it each token gets; absent: all
  DenseFfn ffn;        ///< of a dense layer

  /// What a token passes without asking a router.
  const DenseFfn& dense_ffn() const { return ffn.present() ? ffn : shared; }
};

struct DenseWeights {
  Matrix embedding;      ///< [vocabulary][hidden]
  Matrix rope_divisors;  ///< [1][rotated_dim / 2], see model/rope.h; may be absent
  Matrix output_norm;    ///< [1][hidden]
  Matrix output;         ///< [vocabulary][hidden]; the embedding where the file has no head
  std::vector<LayerWeights> layers;
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
  bool output_is_embedding = false;
  std::vector<ExpertLayout> experts;  ///< per layer

  /// Of the first layer that has experts; of a dense model an empty one, like all its layers.
  const ExpertLayout& first_experts() const;

  uint64_t dense_bytes() const;
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
