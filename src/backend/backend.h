// Where the arithmetic of a layer happens: the interface between the forward pass and a processor.
//
// A stage is as large as a layer's half: the token mixer, the router, the expert FFN. The
// forward pass decides what is computed when; a backend only computes. All buffers of a batch
// belong to the caller (BatchBuffers), so that one backend serves any number of sessions in turn.
//
// Stages cannot fail. One thread at a time calls a backend; inside, it may use many.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "backend/sequence_state.h"
#include "model/expert_layout.h"

namespace sluice {

/// Rows of activations in one of the formats of quant/activation.h; empty when no layer needs it.
struct ActivationRows {
  std::byte* begin = nullptr;
  size_t stride = 0;  ///< bytes from row to row

  std::byte* row(size_t index) const { return begin + index * stride; }
};
inline constexpr size_t kActivationFormatCount = 3;

inline constexpr int32_t kNoExpert = -1;

/// Which experts each token of a batch chose, strongest first, and how their outputs are mixed.
struct Routing {
  int32_t* experts;  ///< [token][used]
  float* weights;    ///< [token][used]
  size_t used_count;
  /// Of a single token: the experts that just missed being chosen, strongest first, and kNoExpert
  /// once a layer has no more.
  int32_t* runners_up = nullptr;  ///< [runner_up_count]
  size_t runner_up_count = 0;
};

/// The working memory of one batch. A *pair* is one (token, chosen expert); pairs are numbered so
/// that those of one expert are adjacent.
struct BatchBuffers {
  float* hidden = nullptr;  ///< [token][hidden_size], the residual stream
  /// [format][token]: the normalised FFN input, in each format that some gate or up matrix wants.
  ActivationRows ffn_input[kActivationFormatCount];
  /// The same for what every token passes: other rows only where experts have a norm of their own.
  ActivationRows shared_input[kActivationFormatCount];
  bool inputs_differ = false;
  Routing routing{};
  const int32_t* pair_of = nullptr;  ///< [token][used]: the pair's number
  /// [format][pair][expert_hidden_size]: silu(gate) · up, in the format that down wants.
  ActivationRows activated[kActivationFormatCount];
  float* expert_output = nullptr;  ///< [pair][hidden_size]
  float* shared_output = nullptr;  ///< [token][hidden_size], of the shared expert; may be null
};

/// Routers that one call of predict() may ask.
inline constexpr size_t kPredictLayersMax = 4;

/// One expert and the tokens that chose it; its pairs are first_pair … first_pair + token_count.
struct ExpertWork {
  ExpertView view;
  const int32_t* tokens = nullptr;  ///< [token_count] rows of ffn_input
  size_t token_count = 0;
  size_t first_pair = 0;
  uint32_t layer = 0;
  int32_t expert = kNoExpert;  ///< whose biases are added; none: an FFN that every token passes
};

class Backend {
 public:
  virtual ~Backend() = default;

  /// hidden[t] = the embedding of tokens[t].
  virtual void embed(std::span<const int32_t> tokens, float* hidden) = 0;

  /// hidden += after(mixer(norm(hidden))), `after` being the norm behind the mixer if the layer has
  /// one, for `token_count` tokens (at most the ubatch size) at positions
  /// first_position …: attention, or what the layer has in its place. What later tokens need of
  /// these goes into the state.
  virtual void mix_tokens(size_t layer, size_t first_position, size_t token_count,
                          SequenceState& state, float* hidden) = 0;

  /// For tokens [first, first + count): normalises the FFN input.
  virtual void prepare_ffn(size_t layer, size_t first, size_t count, const BatchBuffers& batch) = 0;

  /// For tokens [first, first + count): chooses experts by what the layer starts from, before its
  /// token mixer. For families whose router does not wait for attention.
  virtual void route_early(size_t layer, size_t first, size_t count, const BatchBuffers& batch) = 0;

  /// For tokens [first, first + count): normalises the FFN input and chooses experts by it.
  virtual void route(size_t layer, size_t first, size_t count, const BatchBuffers& batch) = 0;

  /// logits[i] = router of layers[i] · norm_of_that_layer(hidden), without biases: what route()
  /// sees before its softmax if `hidden`, one token's state, reached that layer as it is. A guess
  /// about later layers; it leaves all that belongs to the other stages untouched, so it may run
  /// between any two of them. All routers share one parallel step, and each gives the bits that it
  /// gives alone. REQUIRES: at most kPredictLayersMax layers. `logits` is [layer of the
  /// call][expert_count].
  virtual void predict(std::span<const uint32_t> layers, const float* hidden, float* logits) = 0;

  /// activated = silu(gate · input) · (up · input) for every pair of the works.
  virtual void expert_gate_up(std::span<const ExpertWork> works, const BatchBuffers& batch) = 0;
  /// expert_output = down · activated for every pair of the works.
  virtual void expert_down(std::span<const ExpertWork> works, const BatchBuffers& batch) = 0;

  /// For every token of the batch, y = Σ weight · expert_output in routing order, and to it, if
  /// there is any, the shared_output by the measure of the layer's shared gate; then hidden +=
  /// scale · y, and what the layer does to what leaves it. Each norm that the layer has after one
  /// of these comes before it is added.
  virtual void combine(size_t layer, size_t token_count, const BatchBuffers& batch) = 0;
  /// The same of a batch of a dense layer, where y is expert_output.
  virtual void add_ffn(size_t layer, size_t token_count, const BatchBuffers& batch) = 0;

  /// logits[t] = head · norm(hidden[t]), scaled and capped as the family does, for at most the
  /// ubatch size.
  virtual void output(size_t token_count, const float* hidden, float* logits) = 0;
};

}  // namespace sluice
