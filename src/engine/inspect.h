// What a model file holds, and how sluice would run it, from headers alone: no weight is read. A
// file that cannot be run is described all the same, with the reason. Pure apart from reading the
// headers; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace sluice {

/// Where a tensor spends the run.
enum class Residence : uint8_t {
  resident,  ///< in memory from load to end
  streamed,  ///< on the drive, its experts read when they are needed
  unused,    ///< on the drive, never read
};

std::string_view residence_name(Residence residence);

struct ModelReport {
  struct Shard {
    std::string path;
    uint64_t bytes = 0;
  };
  struct TensorRow {
    std::string name;
    std::string_view type;
    std::vector<uint64_t> shape;  ///< fastest-varying dimension first
    uint64_t bytes = 0;
    uint32_t shard = 0;
    Residence residence = Residence::resident;
  };
  struct TypeRow {
    std::string_view type;
    size_t tensor_count = 0;
    uint64_t bytes = 0;
    bool supported = false;
  };
  /// One of the matrices of an expert.
  struct PartRow {
    std::string kind;  ///< "gate", "up", "gate_up", "down"
    std::string_view type;
    uint64_t bytes = 0;  ///< of one expert

    friend bool operator==(const PartRow&, const PartRow&) = default;
  };
  /// What a long session keeps in one format: so much for each token, and so much in all.
  struct KvRow {
    uint64_t bytes_per_token = 0;
    uint64_t fixed_bytes = 0;  ///< windows, running states and their snapshots, with --ubatch 512
  };
  struct ExpertLayer {
    uint32_t layer = 0;
    uint64_t expert_count = 0;
    std::vector<PartRow> parts;

    uint64_t expert_bytes() const;
  };

  // The file.
  std::string file_name;
  std::string architecture;  ///< empty when the file does not say
  std::string name;
  uint32_t version = 0;
  std::vector<Shard> shards;
  std::vector<TensorRow> tensors;  ///< in file order
  std::vector<TypeRow> types;      ///< most bytes first
  size_t vocabulary_tokens = 0;
  std::string cannot_run;  ///< why sluice cannot run it; empty: it can

  // Its experts, by the tensors' names where the model cannot be run.
  uint32_t used_count = 0;  ///< k, experts that a token uses; 0: the file does not say
  std::vector<ExpertLayer> expert_layers;

  // Known only when the architecture is supported.
  size_t layer_count = 0;
  uint32_t context_trained_tokens = 0;
  std::string router;
  KvRow kv_f16, kv_f32, kv_q8_0;
  uint64_t dense_bytes_per_token = 0;  ///< dense weights that computing one token reads

  uint64_t bytes_of(Residence residence) const;
  size_t count_of(Residence residence) const;
  uint64_t file_bytes() const;

  /// B of docs/streaming.md: expert bytes of one token.
  uint64_t bytes_per_token() const;
  /// The smallest expert cache worth having: the experts of one token. Below it a
  /// least-recently-used cache over all layers hits never.
  uint64_t cycle_experts() const { return expert_layers.size() * used_count; }
};

/// Errors are those of a file that cannot be read or is no model at all.
Result<ModelReport> inspect_model(const std::string& path);

}  // namespace sluice
