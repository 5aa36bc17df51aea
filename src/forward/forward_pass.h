// One step of the model: tokens in, logits out. Read forward_pass.cc first; it is the page that
// everything else in this engine serves.
//
// A batch goes layer by layer: all of its tokens pass layer L before any enters layer L+1. For a
// prompt that means each expert is read about once, however long the prompt; for a single token it
// is ordinary decoding. Attention and routing work through the batch in ubatches, which bounds
// their memory. Results do not depend on how tokens are cut into batches or ubatches.
//
// After construction only reading experts can fail (or being stopped): then the step is void, the
// positions it would have filled may be used again, and the pass is ready for the next step. One
// thread at a time.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <span>

#include "backend/backend.h"
#include "base/ledger.h"
#include "experts/expert_store.h"
#include "forward/grouping.h"
#include "forward/moe_layer.h"
#include "model/weight_map.h"

namespace sluice {

struct ForwardLimits {
  size_t batch_token_max = 0;   ///< tokens that pass a layer together
  size_t ubatch_token_max = 0;  ///< tokens of one attention, router or head call
  size_t pairs_per_step = 0;    ///< see MoeLayer
};

/// Which logits a step should give.
enum class LogitsWanted : uint8_t { none, last, all };

/// Receives the logits of consecutive tokens, [count][vocabulary], valid during the call.
using LogitsSink = std::function<void(std::span<const float> logits, size_t token_count)>;

class ForwardPass {
 public:
  /// Memory of a batch: what make() would enter in the ledger.
  static uint64_t batch_bytes(const ModelConfig& config, const WeightMap& map,
                              const ForwardLimits& limits);
  /// Everything passed by reference must outlive the pass.
  static Result<std::unique_ptr<ForwardPass>> make(const ModelConfig& config, const WeightMap& map,
                                                   Backend& backend, ExpertStore& store,
                                                   const ForwardLimits& limits, Ledger& ledger);
  ~ForwardPass();

  /// Runs `tokens` (at most batch_token_max) at positions first_position … and appends their keys
  /// and values to the cache. REQUIRES: ids within the vocabulary, positions within the cache.
  Status step(std::span<const int32_t> tokens, size_t first_position, KvCache& cache,
              LogitsWanted wanted, const LogitsSink& sink, const std::atomic<bool>* stop);

  const ForwardLimits& limits() const { return limits_; }

 private:
  ForwardPass(const ModelConfig& config, const WeightMap& map, Backend& backend,
              ExpertStore& store, const ForwardLimits& limits, Ledger& ledger);
  void give_logits(size_t token_count, LogitsWanted wanted, const LogitsSink& sink);

  const ModelConfig& config_;
  const WeightMap& map_;
  Backend& backend_;
  const ForwardLimits limits_;
  Ledger& ledger_;
  Grouping grouping_;
  MoeLayer moe_;
  os::Arena arena_;
  BatchBuffers batch_;
  float* logits_ = nullptr;  ///< [logits_tokens][vocabulary]
};

}  // namespace sluice
