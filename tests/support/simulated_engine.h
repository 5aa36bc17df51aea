// A decoding engine in virtual time: the real read queue, expert cache, store, forward pass,
// lookahead and governor over a fake drive, and a backend whose stages take a stated time on the
// drive's clock. The same options give the same run to the nanosecond, on any machine.
//
// Scale. The demo model's experts are some forty times smaller than those of a model that one would
// stream. So every byte stands for `byte_scale` bytes: the drive delivers so many times fewer of
// them in a second, and chunks are so many times smaller. Latency stays what it is. Then reading an
// expert takes as long as reading one of a large model, and StageCosts say what computing one
// takes there.
//
// One thread at a time.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "backend/cpu/cpu_backend.h"
#include "engine/options.h"
#include "experts/expert_store.h"
#include "forward/forward_pass.h"
#include "lookahead/lookahead.h"
#include "testing/fake_drive.h"
#include "tests/support/forwarding_backend.h"
#include "tests/support/model_bytes.h"
#include "tests/support/played_model.h"

namespace sluice {

/// What stages take. The defaults are those of a layer of a model of 30 B parameters, of which 3 B
/// are active, whose experts weigh 2.5 MiB, on a machine that reads 18 GB/s from memory; half of
/// the attention block, since the demo model uses 4 experts where the large one uses 8.
struct StageCosts {
  uint64_t attention_ns = 300'000;
  uint64_t route_ns = 30'000;
  uint64_t predict_ns = 40'000;       ///< the first router of a call
  uint64_t predict_more_ns = 18'000;  ///< each further one
  uint64_t gate_up_ns = 97'000;       ///< of one expert
  uint64_t down_ns = 49'000;          ///< of one expert
  uint64_t combine_ns = 5'000;
  uint64_t output_ns = 1'200'000;
  /// A further token in a call takes this share of the first, in attention and experts.
  double further_token = 0.1;
  /// While a stage computes somebody looks after the drive this often.
  uint64_t look_ns = 50'000;
};

/// Lets stages take their time. While it passes the store is looked after, as the compute pool's
/// interlude does in the engine.
class TimedBackend final : public ForwardingBackend {
 public:
  TimedBackend(Backend& backend, FakeDrive& drive, const StageCosts& costs)
      : ForwardingBackend(backend), drive_(drive), costs_(costs) {}
  void set_store(ExpertStore* store) { store_ = store; }
  uint64_t compute_ns() const { return compute_ns_; }

  void mix_tokens(size_t layer, size_t first_position, size_t token_count, SequenceState& state,
                  float* hidden) override;
  void route(size_t layer, size_t first, size_t count, const BatchBuffers& batch) override;
  void predict(std::span<const uint32_t> layers, const float* hidden, float* logits) override;
  void expert_gate_up(std::span<const ExpertWork> works, const BatchBuffers& batch) override;
  void expert_down(std::span<const ExpertWork> works, const BatchBuffers& batch) override;
  void combine(size_t layer, size_t token_count, const BatchBuffers& batch) override;
  void output(size_t token_count, const float* hidden, float* logits) override;

 private:
  void pass(uint64_t ns);
  uint64_t for_tokens(uint64_t ns, size_t token_count) const;
  uint64_t for_works(uint64_t ns, std::span<const ExpertWork> works) const;

  FakeDrive& drive_;
  const StageCosts costs_;
  ExpertStore* store_ = nullptr;
  uint64_t compute_ns_ = 0;
};

struct SimulatedOptions {
  FakeDriveOptions drive = {};      ///< as a user would state it, before scaling
  io::ReadQueueOptions queue = {};  ///< before scaling
  double byte_scale = 44;
  StageCosts costs = {};
  PoolKind pool = PoolKind::layer;
  EvictionKind evict = EvictionKind::decay;
  uint32_t slots_per_layer = ~0u;  ///< a ring has as many for each layer
  Lookahead::Options lookahead = {.governor = {.most = {.distance = 2, .width = 4}}};
  const Correction* correction = nullptr;
  size_t step_tokens = 64;
  size_t context_tokens = 1024;
};

/// What one decode step took.
struct SimulatedStep {
  uint64_t step_ns = 0;
  uint64_t stall_ns = 0;
  uint64_t miss_count = 0;
  Reach reach;
};

class SimulatedEngine {
 public:
  /// Computes. Everything passed must outlive the engine.
  SimulatedEngine(const ModelBytes& model, ComputePool& pool, const SimulatedOptions& options);
  /// Plays what was recorded.
  SimulatedEngine(const ModelBytes& model, ModelRecording& recording,
                  const SimulatedOptions& options);
  ~SimulatedEngine();

  /// One token; its logits are there until the next call.
  SimulatedStep decode(int32_t token);
  std::vector<SimulatedStep> decode(std::span<const int32_t> tokens);
  /// Many tokens in one step; gives what it took.
  SimulatedStep prefill(std::span<const int32_t> tokens);
  std::span<const float> logits() const { return logits_; }
  /// Runs the tokens as a prompt and records what routers said.
  static ModelRecording record(const ModelBytes& model, ComputePool& pool,
                               std::span<const int32_t> tokens);

  const FakeDrive& drive() const { return drive_; }
  ExpertStore& store() { return *store_; }
  const Lookahead& lookahead() const { return *lookahead_; }
  uint64_t compute_ns() const { return timed_->compute_ns(); }

 private:
  void build(const ModelBytes& model, Backend& backend);
  SimulatedStep step(std::span<const int32_t> tokens);

  const SimulatedOptions options_;
  Ledger ledger_;
  FakeDrive drive_;
  io::ReadQueue queue_;
  std::unique_ptr<SlotPool> slots_;
  std::unique_ptr<ExpertStore> store_;
  std::unique_ptr<Backend> inner_;
  std::unique_ptr<TimedBackend> timed_;
  std::unique_ptr<Lookahead> lookahead_;
  std::unique_ptr<ForwardPass> forward_;
  std::optional<SequenceState> state_;
  std::vector<float> logits_;
};

}  // namespace sluice
