// A gated short convolution (Liquid AI 2025, "LFM2 technical report"): the input makes three rows,
// of which two are multiplied, pass a causal convolution over the last few tokens, channel by
// channel, and are multiplied by the third. What a layer remembers are the rows that the next
// convolution will want.
#pragma once

#include "backend/cpu/token_mixer.h"

namespace sluice {

class ShortConvolution final : public TokenMixer {
 public:
  explicit ShortConvolution(const CpuContext& cpu);

  void want_input(const LayerWeights& layer, ActivationSet& input) const override;
  void lay_out(Carver& carve) override;
  void mix(size_t layer, size_t first_position, size_t token_count, const ActivationSet& input,
           SequenceState& state, float* out) override;

 private:
  size_t remembered() const { return cpu_.config.convolution_width - 1; }

  const CpuContext& cpu_;
  /// U = ubatch tokens
  float* gates_ = nullptr;         ///< [U][3][hidden_size]: of the input, of the output, the input
  float* rows_ = nullptr;          ///< [remembered + U][hidden_size], gated inputs
  float* convolved_ = nullptr;     ///< [U][hidden_size]
  ActivationSet convolved_input_;  ///< [U][hidden_size], for the output projection
};

}  // namespace sluice
