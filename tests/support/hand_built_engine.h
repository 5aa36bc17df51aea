// An engine put together by hand, part by part, over a fake drive: the same queue, slots, store,
// backend and forward pass that engine/loader joins over real files. So a whole model runs while
// its drive is slow, lies about lengths, fails, or answers in any order. One thread at a time.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "backend/cpu/cpu_backend.h"
#include "engine/options.h"
#include "experts/expert_store.h"
#include "forward/forward_pass.h"
#include "testing/fake_drive.h"
#include "tests/support/forwarding_backend.h"
#include "tests/support/model_bytes.h"

namespace sluice {

/// Keeps what the router chose, and tells whoever listens.
class RoutingRecorder final : public ForwardingBackend {
 public:
  RoutingRecorder(Backend& backend, size_t layer_count)
      : ForwardingBackend(backend), chosen_(layer_count) {}

  /// [layer][token]: the experts, ascending, of every token since clear().
  const std::vector<std::vector<std::vector<int32_t>>>& chosen() const { return chosen_; }
  void clear() {
    for (auto& layer : chosen_) layer.clear();
  }
  /// Called with each batch's embeddings, [token][hidden_size].
  std::function<void(size_t token_count, const float* hidden)> on_embed;
  /// Called before each piece of a layer's attention.
  std::function<void(size_t layer)> on_attention;
  /// Called after each router, with its arguments.
  std::function<void(size_t layer, size_t first, size_t count, const BatchBuffers& batch)> on_route;

  void embed(std::span<const int32_t> tokens, float* hidden) override {
    ForwardingBackend::embed(tokens, hidden);
    if (on_embed) on_embed(tokens.size(), hidden);
  }
  void mix_tokens(size_t layer, size_t first_position, size_t token_count, SequenceState& state,
                  float* hidden) override {
    if (on_attention) on_attention(layer);
    ForwardingBackend::mix_tokens(layer, first_position, token_count, state, hidden);
  }
  void route(size_t layer, size_t first, size_t count, const BatchBuffers& batch) override;
  void route_early(size_t layer, size_t first, size_t count, const BatchBuffers& batch) override;

 private:
  void record(size_t layer, size_t first, size_t count, const BatchBuffers& batch);

  std::vector<std::vector<std::vector<int32_t>>> chosen_;
};

struct HandBuiltOptions {
  FakeDriveOptions drive = {};
  uint32_t slots_per_layer = ~0u;  ///< at most as many as there are experts
  uint32_t ring_slots = 0;         ///< of the ring pool; 0: a pool for each layer
  EvictionKind evict = EvictionKind::lru;
  uint32_t half_life_tokens = 64;  ///< of eviction by decay
  size_t step_tokens = 0;          ///< 0: a batch
  size_t batch_tokens = 64;
  size_t ubatch_tokens = 64;
  size_t pairs_per_step = 256;
  size_t context_tokens = 128;
  KvType kv = KvType::f32;
  kernels::Isa isa = kernels::usable_isas().back();
  std::optional<Lookahead::Options> lookahead = {};

  size_t step_token_max() const { return std::max(step_tokens, batch_tokens); }
};

class HandBuiltEngine {
 public:
  /// The model and the pool must outlive it.
  HandBuiltEngine(const ModelBytes& model, ComputePool& pool, const HandBuiltOptions& options);
  ~HandBuiltEngine();

  /// Appends tokens and gives the logits of each, [token][vocabulary]. On an error the sequence
  /// stands where it stood; what its layers have lost by then is run again by the next call.
  Result<std::vector<float>> append(std::span<const int32_t> tokens);
  size_t position() const { return tokens_.size(); }
  void reset() { rewind(0); }
  /// Forgets tokens as far as the layers can, and gives the position.
  size_t rewind(size_t position);
  SequenceState& state() { return *state_; }
  /// Gives up guesses and waits for the drive.
  void settle();

  FakeDrive& drive() { return drive_; }
  ExpertStore& store() { return *store_; }
  SlotPool& slots() { return *slots_; }
  const Ledger& ledger() const { return ledger_; }
  RoutingRecorder& routing() { return *recorder_; }
  std::atomic<bool>& stop() { return stop_; }

 private:
  Result<std::vector<float>> run(std::span<const int32_t> tokens);
  Result<std::vector<float>> step(std::span<const int32_t> tokens);

  const HandBuiltOptions options_;
  ComputePool& pool_;
  Ledger ledger_;
  FakeDrive drive_;
  io::ReadQueue queue_;
  std::unique_ptr<SlotPool> slots_;
  std::unique_ptr<ExpertStore> store_;
  std::unique_ptr<CpuBackend> backend_;
  std::unique_ptr<RoutingRecorder> recorder_;
  std::unique_ptr<Lookahead> lookahead_;
  std::unique_ptr<ForwardPass> forward_;
  std::optional<SequenceState> state_;
  std::vector<int32_t> tokens_;
  std::atomic<bool> stop_{false};
};

}  // namespace sluice
