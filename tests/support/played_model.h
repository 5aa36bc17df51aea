// A model's text played back without computing: what its routers chose and what they would have
// said early is recorded once, from the real backend, and then a decode step costs microseconds. So
// the reading side (store, queue, lookahead, governor) can be run for thousands of tokens on many
// drives within a test. Nothing that is decided depends on the numbers left out; a test compares a
// played run with a computed one. One thread at a time.
#pragma once

#include <array>
#include <vector>

#include "backend/backend.h"
#include "lookahead/reach.h"
#include "model/config.h"

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

/// Passes every stage on to another backend and records; for one sequence from its beginning.
class RecordingBackend final : public Backend {
 public:
  RecordingBackend(Backend& backend, const ModelConfig& config)
      : backend_(backend), recording_(config), hidden_size_(config.hidden_size) {}

  ModelRecording take() { return std::move(recording_); }

  void embed(std::span<const int32_t> tokens, float* hidden) override;
  void attention_block(size_t layer, size_t first_position, size_t token_count, KvCache& cache,
                       float* hidden) override {
    backend_.attention_block(layer, first_position, token_count, cache, hidden);
  }
  void route(size_t layer, size_t first, size_t count, const BatchBuffers& batch) override;
  void predict(std::span<const uint32_t> layers, const float* hidden, float* logits) override {
    backend_.predict(layers, hidden, logits);
  }
  void expert_gate_up(std::span<const ExpertWork> works, const BatchBuffers& batch) override {
    backend_.expert_gate_up(works, batch);
  }
  void expert_down(std::span<const ExpertWork> works, const BatchBuffers& batch) override {
    backend_.expert_down(works, batch);
  }
  void combine(size_t token_count, const BatchBuffers& batch) override {
    backend_.combine(token_count, batch);
  }
  void output(size_t token_count, const float* hidden, float* logits) override {
    backend_.output(token_count, hidden, logits);
  }

 private:
  void ask(size_t token, size_t place, const float* hidden);

  Backend& backend_;
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
  void attention_block(size_t, size_t, size_t, KvCache&, float*) override {}
  void route(size_t layer, size_t first, size_t count, const BatchBuffers& batch) override;
  void predict(std::span<const uint32_t> layers, const float* hidden, float* logits) override;
  void expert_gate_up(std::span<const ExpertWork>, const BatchBuffers&) override {}
  void expert_down(std::span<const ExpertWork>, const BatchBuffers&) override {}
  void combine(size_t, const BatchBuffers&) override {}
  void output(size_t, const float*, float*) override {}

 private:
  ModelRecording& recording_;
  size_t step_first_ = 0;
  size_t step_end_ = 0;
  size_t place_ = 0;  ///< where the last token is, see ModelRecording
};

}  // namespace sluice
