// Attention with a key and a value for each KV head: project, normalise, rotate, store, attend,
// project back.
#pragma once

#include <vector>

#include "backend/cpu/rope_table.h"
#include "backend/cpu/token_mixer.h"

namespace sluice {

class Attention final : public TokenMixer {
 public:
  /// The tables [index of LayerConfig::rope] are extended as far as the mixer is asked for.
  Attention(const CpuContext& cpu, const std::vector<RopeTable>& ropes);

  void want_input(const LayerWeights& layer, ActivationSet& input) const override;
  void lay_out(Carver& carve) override;
  void mix(size_t layer, size_t first_position, size_t token_count, const ActivationSet& input,
           SequenceState& state, float* out) override;

 private:
  void project(size_t layer, size_t token_count, const ActivationSet& input);
  void turn_heads(size_t layer, float* heads, size_t head_count, const Matrix& norm,
                  size_t position) const;
  void turn_and_store(size_t layer, size_t first_position, size_t token_count,
                      SequenceState& state);

  const CpuContext& cpu_;
  const std::vector<RopeTable>& ropes_;
  size_t query_max_ = 0;     ///< floats of a token's queries in the widest layer
  size_t key_max_ = 0;       ///< of its keys
  size_t value_max_ = 0;     ///< of its values
  size_t attended_max_ = 0;  ///< of what its heads give
  std::vector<float> ones_;  ///< [value_dim], the weight of a norm without one
  /// U = ubatch tokens
  float* query_ = nullptr;        ///< [U][head][key_dim]
  float* key_ = nullptr;          ///< [U][kv_head][key_dim]
  float* value_ = nullptr;        ///< [U][kv_head][value_dim]
  float* attended_ = nullptr;     ///< [U][head][value_dim]
  ActivationSet attended_input_;  ///< [U][head · value_dim], for the output projection
};

}  // namespace sluice
