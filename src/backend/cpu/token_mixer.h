// What a layer does between its tokens before its FFN looks at each by itself: attention in one of
// its forms, or a recurrence. A mixer serves all layers of its kind. Its scratch memory holds one
// ubatch, and is free between two calls. One thread at a time.
#pragma once

#include "backend/cpu/carver.h"
#include "backend/cpu/cpu_context.h"
#include "backend/sequence_state.h"

namespace sluice {

class TokenMixer {
 public:
  virtual ~TokenMixer() = default;

  /// Says which formats the matrices of a layer of its kind want the layer's input in.
  virtual void want_input(const LayerWeights& layer, ActivationSet& input) const = 0;
  virtual void lay_out(Carver& carve) = 0;

  /// out[token][hidden_size] = what the layer adds to the residual stream, for tokens at positions
  /// first_position …; what later tokens need of these goes into the state.
  virtual void mix(size_t layer, size_t first_position, size_t token_count,
                   const ActivationSet& input, SequenceState& state, float* out) = 0;
};

}  // namespace sluice
