// The CPU backend: every stage of backend/backend.h with the kernels of one ISA on one compute
// pool. Its own scratch memory holds one ubatch; nothing is allocated after make().
#pragma once

#include <memory>
#include <vector>

#include "backend/backend.h"
#include "backend/cpu/activation_rows.h"
#include "backend/cpu/matmul_jobs.h"
#include "base/ledger.h"
#include "model/weight_map.h"
#include "os/arena.h"
#include "parallel/compute_pool.h"

namespace sluice {

struct ExpertTile;

class CpuBackend final : public Backend {
 public:
  struct Limits {
    size_t ubatch_token_max;   ///< sizes the scratch memory
    size_t context_token_max;  ///< sizes the table of rotation angles
  };
  /// The model, the table and the pool must outlive the backend. Its memory is entered in the
  /// ledger.
  static Result<std::unique_ptr<CpuBackend>> make(const ModelConfig& config, const WeightMap& map,
                                                  const kernels::KernelTable& kernels,
                                                  ComputePool& pool, const Limits& limits,
                                                  Ledger& ledger);
  /// What make() would enter in the ledger.
  static uint64_t memory_bytes(const ModelConfig& config, const WeightMap& map, ComputePool& pool,
                               const Limits& limits);
  ~CpuBackend() override;

  void embed(std::span<const int32_t> tokens, float* hidden) override;
  void attention_block(size_t layer, size_t first_position, size_t token_count, KvCache& cache,
                       float* hidden) override;
  void prepare_ffn(size_t layer, size_t first, size_t count, const BatchBuffers& batch) override;
  void route_early(size_t layer, size_t first, size_t count, const BatchBuffers& batch) override;
  void route(size_t layer, size_t first, size_t count, const BatchBuffers& batch) override;
  void predict(std::span<const uint32_t> layers, const float* hidden, float* logits) override;
  void expert_gate_up(std::span<const ExpertWork> works, const BatchBuffers& batch) override;
  void expert_down(std::span<const ExpertWork> works, const BatchBuffers& batch) override;
  void combine(size_t layer, size_t token_count, const BatchBuffers& batch) override;
  void add_ffn(size_t token_count, const BatchBuffers& batch) override;
  void output(size_t token_count, const float* hidden, float* logits) override;

 private:
  /// Pieces of the scratch arena. U = ubatch tokens.
  struct Scratch {
    float* projected;              ///< [U][hidden_size], normalised rows, then what a block adds
    float* query;                  ///< [U][head][head_dim]
    float* key;                    ///< [U][kv_head][head_dim]
    float* value;                  ///< [U][kv_head][head_dim]
    float* attended;               ///< [U][head][head_dim]
    float* router_logits;          ///< [U][expert]
    float* selection;              ///< [U][expert], what experts are chosen by
    float* rope_cos;               ///< [context position][rotated_dim / 2]
    float* rope_sin;               ///< [context position][rotated_dim / 2]
    float* per_thread;             ///< [thread][thread_floats_]
    ActivationSet input;           ///< [U][hidden_size], for the projections and the head
    ActivationSet attended_input;  ///< [U][heads · head_dim], for the output projection
    float* predict_norm;           ///< [hidden_size], for one router of predict() after another
    ActivationSet predict_input;   ///< [kPredictLayersMax][hidden_size], for its routers
  };

  CpuBackend(const ModelConfig& config, const WeightMap& map, const kernels::KernelTable& kernels,
             ComputePool& pool, const Limits& limits, Ledger& ledger);
  /// Lays the scratch out over `memory` (null: only measures) and returns its size.
  uint64_t lay_out(std::byte* memory);

  /// f(token) for each of them, on the pool; a single one is not worth waking the team for.
  template <typename F>
  void for_tokens(size_t token_count, const F& f) {
    pool_.run_ranges(token_count, 1, [&](size_t begin, size_t end) {
      for (size_t token = begin; token < end; ++token) f(token);
    });
  }
  void normalise(const float* hidden, const Matrix& weight, size_t token_count);
  void extend_rope_table(size_t position_end);
  void project_query_key_value(size_t layer, size_t token_count);
  void add_bias(const Matrix& bias, size_t token_count, float* rows);
  void turn_heads(float* heads, size_t head_count, const Matrix& norm, bool is_rotated,
                  size_t position);
  void rotate_and_store(size_t layer, size_t first_position, size_t token_count, KvCache& cache);
  void attend(size_t layer, size_t first_position, size_t token_count, const KvCache& cache);
  void add_expert_bias(const Matrix& biases, const ExpertTile& tile, float* out,
                       size_t stride) const;
  float shared_share(size_t layer, size_t token, const BatchBuffers& batch) const;
  void choose(size_t layer, size_t first, size_t count, const BatchBuffers& batch);
  void score_experts(const LayerWeights& weights, std::span<float> scores,
                     std::span<float> selection) const;
  void write_ffn_input(size_t first, size_t count, const BatchBuffers& batch);
  MatmulJob input_job(const Matrix& weights, size_t token_count, float* out) const;
  void gate_up_tile(const ExpertTile& tile, size_t thread, const BatchBuffers& batch);

  const ModelConfig& config_;
  const WeightMap& map_;
  const kernels::KernelTable& kernels_;
  ComputePool& pool_;
  const Limits limits_;
  Ledger& ledger_;
  RopeAngles rope_;
  size_t rope_position_end_ = 0;  ///< rows of the rotation table that are filled
  size_t thread_floats_ = 0;
  os::Arena arena_;
  Scratch scratch_{};
};

}  // namespace sluice
