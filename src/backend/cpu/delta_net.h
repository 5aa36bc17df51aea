// Linear attention with a state of fixed size: the gated delta net (Yang et al. 2024, "Gated Delta
// Networks") and Kimi delta attention (Kimi Team 2025, "Kimi Linear"). Each head keeps a matrix
// that maps keys to values. A token lets it decay, corrects what it holds for the token's key
// towards the token's value, and reads it with its query (DeltaArgs in kernels/kernels.h). Queries,
// keys and values have passed a short convolution over the last few tokens; what heads give is
// normalised and gated.
//
// Tokens pass in order, so that any cut into ubatches gives the same bits; heads, and columns of
// their states, are what threads share out. The running state of a layer is
// [value head][state of the kernel], then the inputs of the convolution of the last width − 1
// tokens.
#pragma once

#include <vector>

#include "backend/cpu/token_mixer.h"

namespace sluice {

class DeltaNet final : public TokenMixer {
 public:
  explicit DeltaNet(const CpuContext& cpu);

  void want_input(const LayerWeights& layer, ActivationSet& input) const override;
  void lay_out(Carver& carve) override;
  void mix(size_t layer, size_t first_position, size_t token_count, const ActivationSet& input,
           SequenceState& state, float* out) override;

 private:
  void project(const DeltaNetWeights& weights, size_t token_count, const ActivationSet& input);
  void project_from_low(const DeltaNetWeights& weights, size_t token_count);
  void convolve(const DeltaNetWeights& weights, size_t token) const;
  void set_decays(const DeltaNetWeights& weights, size_t token) const;
  void set_strengths(const DeltaNetWeights& weights, size_t token) const;
  void pass_states(size_t token_count, float* states) const;
  void gate_output(const DeltaNetWeights& weights, size_t token) const;

  float* last_inputs(float* running) const {
    return running + size_t{shape_.value_head_count} * shape_.head_state_floats();
  }
  size_t last_input_floats() const {
    return size_t{shape_.convolution_width - 1} * shape_.channels();
  }

  const CpuContext& cpu_;
  const DeltaConfig& shape_;
  const bool is_kda_;
  size_t decay_rank_ = 0;
  size_t gate_rank_ = 0;
  /// U = ubatch tokens, V = value heads
  float* channels_ = nullptr;            ///< [width − 1 + U][channels], the oldest tokens first
  float* convolved_ = nullptr;           ///< [U][channels]: queries, keys, values
  float* strength_and_decay_ = nullptr;  ///< [U][2 · V], as projected together
  float* strength_ = nullptr;            ///< [U][V]
  float* head_decay_ = nullptr;          ///< [U][V], where a head decays as one
  float* decay_ = nullptr;               ///< [U][V][key_dim]
  float* decay_low_ = nullptr;           ///< [U][rank]
  float* gate_low_ = nullptr;            ///< [U][rank]
  float* gate_ = nullptr;                ///< [U][V · value_dim]
  float* given_ = nullptr;               ///< [U][V · value_dim], what heads give
  ActivationSet decay_low_input_;        ///< [U][rank]
  ActivationSet gate_low_input_;         ///< [U][rank]
  ActivationSet given_input_;            ///< [U][V · value_dim]
};

}  // namespace sluice
