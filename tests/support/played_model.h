// A model's text played back without computing: what its routers chose and what they would have
// said early is recorded once, from the real backend, and then a decode step costs microseconds. So
// the reading side (store, queue, lookahead, governor) can be run for thousands of tokens on many
// drives within a test. Nothing that is decided depends on the numbers left out; a test compares a
// played run with a computed one. One thread at a time.
#pragma once

#include <array>
#include <vector>

#include "lookahead/reach.h"
#include "model/config.h"
#include "tests/support/forwarding_backend.h"

namespace sluice {

/// What routers said of every token of one sequence.
class ModelRecording {
 public:
  explicit ModelRecording(const ModelConfig& config);

  /// Scores are asked at distance 0 (the layer's own) … kDistanceMax, of the states at `place` 0
  /// (the embedding, before layer 0) and layer + 1 (each layer's router).
  static constexpr size_t kScoresPerPlace = kDistanceMax + 1;

  size_t token_count() const { return token_count_; }
  void resize(size_t token_count);
  std::span<int32_t> experts(size_t token, size_t layer);
  std::span<float> weights(size_t token, size_t layer);
  std::span<float> scores(size_t token, size_t place, size_t distance);

  const size_t layer_count;
  const size_t expert_count;
  const size_t used_count;

 private:
  size_t token_count_ = 0;
  std::vector<int32_t> experts_;  ///< [token][layer][used]
  std::vector<float> weights_;    ///< [token][layer][used]
  std::vector<float> scores_;     ///< [token][place][distance][expert]
};

/// Records one sequence from its beginning.
class RecordingBackend final : public ForwardingBackend {
 public:
  RecordingBackend(Backend& backend, const ModelConfig& config)
      : ForwardingBackend(backend), recording_(config), hidden_size_(config.hidden_size) {}

  ModelRecording take() { return std::move(recording_); }

  void embed(std::span<const int32_t> tokens, float* hidden) override;
  void route(size_t layer, size_t first, size_t count, const BatchBuffers& batch) override;

 private:
  void ask(size_t token, size_t place, const float* hidden);

  ModelRecording recording_;
  const size_t hidden_size_;
  size_t step_first_ = 0;  ///< token of the sequence
};

/// Says what the recorded model said, and computes nothing. Steps follow each other from the first
/// recorded token on; each layer is passed in one batch.
class PlayedBackend final : public Backend {
 public:
  explicit PlayedBackend(ModelRecording& recording) : recording_(recording) {}

  void embed(std::span<const int32_t> tokens, float* hidden) override;
  void mix_tokens(size_t, size_t, size_t, SequenceState&, float*) override {}
  void route(size_t layer, size_t first, size_t count, const BatchBuffers& batch) override;
  void predict(std::span<const uint32_t> layers, const float* hidden, float* logits) override;
  void expert_gate_up(std::span<const ExpertWork>, const BatchBuffers&) override {}
  void expert_down(std::span<const ExpertWork>, const BatchBuffers&) override {}
  void combine(size_t, size_t, const BatchBuffers&) override {}
  void add_ffn(size_t, size_t, const BatchBuffers&) override {}
  void prepare_ffn(size_t, size_t, size_t, const BatchBuffers&) override {}
  void route_early(size_t, size_t, size_t, const BatchBuffers&) override {}
  void output(size_t, const float*, float*) override {}

 private:
  ModelRecording& recording_;
  size_t step_first_ = 0;
  size_t step_end_ = 0;
  size_t place_ = 0;  ///< where the last token is, see ModelRecording
};

}  // namespace sluice
