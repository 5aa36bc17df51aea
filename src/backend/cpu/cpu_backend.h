// The CPU backend: every stage of backend/backend.h with the kernels of one ISA on one compute
// pool. Its own scratch memory holds one ubatch; nothing is allocated after make().
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "backend/backend.h"
#include "backend/cpu/cpu_context.h"
#include "backend/cpu/rope_table.h"
#include "backend/cpu/token_mixer.h"
#include "base/ledger.h"
#include "os/arena.h"

namespace sluice {

struct ExpertTile;

class CpuBackend final : public Backend {
 public:
  using Limits = CpuLimits;
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
  void mix_tokens(size_t layer, size_t first_position, size_t token_count, SequenceState& state,
                  float* hidden) override;
  void prepare_ffn(size_t layer, size_t first, size_t count, const BatchBuffers& batch) override;
  void route_early(size_t layer, size_t first, size_t count, const BatchBuffers& batch) override;
  void route(size_t layer, size_t first, size_t count, const BatchBuffers& batch) override;
  void predict(std::span<const uint32_t> layers, const float* hidden, float* logits) override;
  void expert_gate_up(std::span<const ExpertWork> works, const BatchBuffers& batch) override;
  void expert_down(std::span<const ExpertWork> works, const BatchBuffers& batch) override;
  void combine(size_t layer, size_t token_count, const BatchBuffers& batch) override;
  void add_ffn(size_t layer, size_t token_count, const BatchBuffers& batch) override;
  void output(size_t token_count, const float* hidden, float* logits) override;

 private:
  /// Pieces of the scratch arena. U = ubatch tokens.
  struct Scratch {
    float* projected;             ///< [U][hidden_size], normalised rows, then what a mixer adds
    float* router_logits;         ///< [U][expert]
    float* selection;             ///< [U][expert], what experts are chosen by
    float* per_thread;            ///< [thread][thread_floats_]
    ActivationSet input;          ///< [U][hidden_size], for mixers, routers and the head
    float* predict_norm;          ///< [hidden_size], for one router of predict() after another
    ActivationSet predict_input;  ///< [kPredictLayersMax][hidden_size], for its routers
  };

  CpuBackend(const ModelConfig& config, const WeightMap& map, const kernels::KernelTable& kernels,
             ComputePool& pool, const Limits& limits, Ledger& ledger);
  /// Lays the scratch out over `memory` (null: only measures) and returns its size.
  uint64_t lay_out(std::byte* memory);

  TokenMixer& mixer_of(size_t layer) const;
  void finish_logits(std::span<float> logits) const;
  void normalise(const float* hidden, const Matrix& weight, size_t token_count);
  void add_expert_bias(const Matrix& biases, const ExpertTile& tile, float* out,
                       size_t stride) const;
  float shared_share(size_t layer, size_t token, const BatchBuffers& batch) const;
  void choose(size_t layer, size_t first, size_t count, const BatchBuffers& batch);
  void score_experts(const LayerWeights& weights, std::span<float> scores,
                     std::span<float> selection) const;
  void write_ffn_input(size_t first, size_t count, const ActivationRows* rows_by_format);
  void normalise_for_router(const LayerWeights& weights, const float* hidden, float* row) const;
  void add_to_hidden(const LayerWeights& weights, float* row, float* hidden) const;
  void gate_up_tile(const ExpertTile& tile, size_t thread, const BatchBuffers& batch);

  const CpuContext cpu_;
  Ledger& ledger_;
  std::vector<RopeTable> ropes_;  ///< [index of LayerConfig::rope]
  std::array<std::unique_ptr<TokenMixer>, kMixerKindCount> mixers_;  ///< those that layers use
  size_t thread_floats_ = 0;
  os::Arena arena_;
  Scratch scratch_{};
};

}  // namespace sluice
