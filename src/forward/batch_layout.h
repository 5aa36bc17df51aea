// Where the arrays of a step lie in one block of memory: packed for as many tokens as the step has,
// so that a small step touches little of a block that could hold a large one. Pure arithmetic; any
// thread.
#pragma once

#include <array>
#include <cstdint>

#include "backend/backend.h"
#include "model/weight_map.h"

namespace sluice {

struct ForwardLimits;

/// Tokens whose logits are computed together: rows of a whole vocabulary are large.
size_t logits_token_max(const ForwardLimits& limits);

/// The limits cut down to what a step of so many tokens needs.
ForwardLimits limits_for(const ForwardLimits& limits, size_t token_count);

class BatchLayout {
 public:
  BatchLayout(const ModelConfig& config, const WeightMap& map, const ForwardLimits& limits);

  uint64_t bytes() const { return bytes_; }
  /// The residual stream of all tokens of the step.
  float* hidden(std::byte* memory) const;
  /// The arrays of one batch of it, but for `hidden` and pair_of, which belong to others.
  BatchBuffers place(std::byte* memory) const;
  /// The same for what every token passes, a dense layer's FFN or the shared expert: pairs are
  /// tokens, and expert_output is shared_output.
  BatchBuffers place_dense_ffn(std::byte* memory) const;
  float* logits(std::byte* memory) const;

 private:
  /// An array of rows; stride 0: not needed.
  struct Rows {
    uint64_t offset = 0;
    uint64_t stride = 0;
  };
  Rows take(uint64_t row_count, uint64_t stride);

  uint64_t bytes_ = 0;
  bool inputs_differ_ = false;  ///< some layer has a norm for experts alone
  size_t used_count_;
  Rows hidden_, experts_, weights_, expert_output_, dense_output_, logits_;
  std::array<Rows, kActivationFormatCount> ffn_input_, shared_input_, activated_, dense_activated_;
};

}  // namespace sluice
