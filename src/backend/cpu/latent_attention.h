// Multi-head latent attention (DeepSeek-AI 2024, "DeepSeek-V2", section 2.1): keys and values of
// all heads are made from one short vector a token, the latent, and only that and one rotated key
// are cached. The matrices that would make keys and values from it are applied to the other side
// instead: to queries before they meet the latents, and to what attention gives afterwards. What
// remains is attention of all heads over one KV head, whose key is latent and rotated part, and
// whose value is the latent.
#pragma once

#include <vector>

#include "backend/cpu/rope_table.h"
#include "backend/cpu/token_mixer.h"

namespace sluice {

class LatentAttention final : public TokenMixer {
 public:
  /// The tables [index of LayerConfig::rope] are extended as far as the mixer is asked for.
  LatentAttention(const CpuContext& cpu, const std::vector<RopeTable>& ropes);

  void want_input(const LayerWeights& layer, ActivationSet& input) const override;
  void lay_out(Carver& carve) override;
  void mix(size_t layer, size_t first_position, size_t token_count, const ActivationSet& input,
           SequenceState& state, float* out) override;

 private:
  /// A matrix for each head: `row_count` rows of the first at `first_row`, `step` rows from one
  /// head to the next.
  struct HeadMatrices {
    const Matrix& weights;
    size_t head_count;
    size_t first_row;
    size_t step;
    size_t row_count;
  };
  void project(const LatentWeights& weights, size_t token_count, const ActivationSet& input);
  void store_latents(size_t layer, size_t first_position, size_t token_count, SequenceState& state);
  void absorb_queries(size_t layer, size_t first_position, size_t token_count);
  void raise_values(size_t layer, size_t token_count);
  void multiply_by_heads(const HeadMatrices& heads, const ActivationSet& input, size_t token_count,
                         float* out, size_t out_size);

  const CpuContext& cpu_;
  const LatentConfig& shape_;
  const std::vector<RopeTable>& ropes_;
  size_t head_max_ = 0;
  std::vector<MatmulJob> jobs_;  ///< [head]
  /// U = ubatch tokens, R = latent_dim
  float* low_ = nullptr;           ///< [U][query_rank], queries before they are raised
  float* query_ = nullptr;         ///< [U][head][unrotated_dim + rotated_dim]
  float* latent_ = nullptr;        ///< [U][R + rotated_dim], what is cached
  float* absorbed_ = nullptr;      ///< [U][head][R + rotated_dim], queries as the cache wants them
  float* attended_ = nullptr;      ///< [U][head][R]
  float* gate_ = nullptr;          ///< [U][head], of families with gates
  float* value_ = nullptr;         ///< [U][head][value_dim]
  ActivationSet low_input_;        ///< [U][query_rank]
  ActivationSet unrotated_input_;  ///< [U · head][unrotated_dim]
  ActivationSet attended_input_;   ///< [U · head][R]
  ActivationSet value_input_;      ///< [U][head · value_dim]
};

}  // namespace sluice
