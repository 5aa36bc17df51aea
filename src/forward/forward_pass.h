// One step of the model: tokens in, logits out. Read forward_pass.cc first; it is the page that
// everything else in this engine serves.
//
// A step goes layer by layer: all of its tokens pass layer L before any enters layer L+1. For a
// prompt that means each expert is read about once, however long the prompt; for a single token it
// is ordinary decoding. Within a layer a long prompt is cut into batches, which bounds the memory
// of the experts' outputs, and attention and routing work through a batch in ubatches. Results do
// not depend on how tokens are cut.
//
// After construction only reading experts can fail (or being stopped): then the step is void, its
// caller rewinds the state, and the pass is ready for the next step. One thread at a time.
#pragma once

#include <atomic>
#include <memory>
#include <span>

#include "backend/backend.h"
#include "base/function_ref.h"
#include "base/ledger.h"
#include "experts/expert_store.h"
#include "forward/grouping.h"
#include "forward/moe_layer.h"
#include "lookahead/lookahead.h"
#include "model/weight_map.h"

namespace sluice {

struct ForwardLimits {
  size_t step_token_max = 0;    ///< tokens that pass a layer before any enters the next
  size_t batch_token_max = 0;   ///< tokens whose experts are computed together
  size_t ubatch_token_max = 0;  ///< tokens of one attention, router or head call
  size_t pairs_per_step = 0;    ///< see MoeLayer
  size_t runner_up_count = 0;   ///< experts that just missed being chosen, for lookahead
};

/// Which logits a step should give.
enum class LogitsWanted : uint8_t { none, last, all };

/// Receives the logits of consecutive tokens, [count][vocabulary], valid during the call.
using LogitsSink = FunctionRef<void(std::span<const float> logits, size_t token_count)>;

class ForwardPass {
 public:
  /// Everything passed by reference must outlive the pass; `lookahead` may be null.
  static Result<std::unique_ptr<ForwardPass>> make(const ModelConfig& config, const WeightMap& map,
                                                   Backend& backend, ExpertStore& store,
                                                   Lookahead* lookahead,
                                                   const ForwardLimits& limits, Ledger& ledger);
  ~ForwardPass();

  /// Runs `tokens` (at most step_token_max) behind those that the state has seen. REQUIRES: ids
  /// within the vocabulary, positions within the context, and memory for so many tokens reserved.
  Status step(std::span<const int32_t> tokens, SequenceState& state, LogitsWanted wanted,
              const LogitsSink& sink, const std::atomic<bool>* stop);

  const ForwardLimits& limits() const { return limits_; }

  /// Working memory of a step of so many tokens.
  static uint64_t step_bytes(const ModelConfig& config, const WeightMap& map,
                             const ForwardLimits& limits, size_t token_count);
  uint64_t step_bytes(size_t token_count) const {
    return step_bytes(config_, map_, limits_, token_count);
  }
  /// Makes steps of up to so many tokens possible and enters their memory in the ledger; fewer than
  /// before gives the rest back to the system. At first there is memory for one.
  void reserve(size_t token_count);
  uint64_t reserved_bytes() const { return reserved_bytes_; }
  size_t reserved_token_count() const { return reserved_token_count_; }

 private:
  ForwardPass(const ModelConfig& config, const WeightMap& map, Backend& backend, ExpertStore& store,
              Lookahead* lookahead, const ForwardLimits& limits, Ledger& ledger);
  struct Batch {
    size_t first = 0;  ///< of its tokens, in the step
    size_t token_count = 0;
    size_t first_position = 0;
    size_t tokens_behind = 0;  ///< in the step
    Ranking ranking = Ranking::worth;
  };
  void place_buffers(size_t token_count);
  Status run_layer(uint32_t layer, const Batch& part, SequenceState& state,
                   const std::atomic<bool>* stop);
  Status run_experts(uint32_t layer, const Batch& part, const std::atomic<bool>* stop);
  void compute_dense_ffn(uint32_t layer, size_t token_count);
  void give_logits(size_t token_count, LogitsWanted wanted, const LogitsSink& sink);

  const ModelConfig& config_;
  const WeightMap& map_;
  Backend& backend_;
  ExpertStore& store_;
  Lookahead* const lookahead_;
  const ForwardLimits limits_;
  Ledger& ledger_;
  Grouping grouping_;
  MoeLayer moe_;
  std::vector<int32_t> runners_up_;
  os::Arena arena_;  ///< room for the largest step; only what is reserved is touched
  uint64_t reserved_bytes_ = 0;
  size_t reserved_token_count_ = 0;
  BatchBuffers batch_;
  BatchBuffers dense_batch_;          ///< the same, for what every token passes
  std::vector<int32_t> every_token_;  ///< 0, 1, 2, …
  float* hidden_ = nullptr;           ///< [step tokens][hidden_size]
  float* logits_ = nullptr;           ///< [logits_tokens][vocabulary]
};

}  // namespace sluice
