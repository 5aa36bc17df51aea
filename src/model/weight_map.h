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

struct LayerWeights {
  Matrix attention_norm;    ///< [1][hidden]
  Matrix query;             ///< [heads · head_dim][hidden]
  Matrix key;               ///< [kv_heads · head_dim][hidden]
  Matrix value;             ///< [kv_heads · head_dim][hidden]
  Matrix attention_output;  ///< [hidden][heads · head_dim]
  Matrix query_norm;        ///< [1][head_dim]
  Matrix key_norm;          ///< [1][head_dim]
  Matrix ffn_norm;          ///< [1][hidden]
  Matrix router;            ///< [experts][hidden]
};

struct DenseWeights {
  Matrix embedding;    ///< [vocabulary][hidden]
  Matrix output_norm;  ///< [1][hidden]
  Matrix output;       ///< [vocabulary][hidden]; the embedding where the file has no head
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

  uint64_t dense_bytes() const;
  uint64_t expert_bytes() const;  ///< of all experts of all layers
  /// Expert bytes that one token uses, B in docs/streaming.md.
  uint64_t expert_bytes_per_token(const ModelConfig& config) const;
  /// Dense bytes that one token reads: all but the embedding, of which it reads a row.
  uint64_t dense_bytes_per_token() const;
};

/// Finds and checks every tensor. Errors name the tensor, what it is and what was expected.
/// Sets config.vocabulary_size. Tensors that no part of the forward pass uses are left on the drive.
Result<std::unique_ptr<WeightMap>> plan_weights(const gguf::GgufFile& file, ModelConfig& config);

}  // namespace sluice
