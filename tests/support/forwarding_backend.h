// A backend that passes every stage on to another: what those that listen, record or take time
// build on. They override the stages that they care about.
#pragma once

#include "backend/backend.h"

namespace sluice {

class ForwardingBackend : public Backend {
 public:
  /// `to` must outlive it.
  explicit ForwardingBackend(Backend& to) : backend_(to) {}

  void embed(std::span<const int32_t> tokens, float* hidden) override {
    backend_.embed(tokens, hidden);
  }
  void mix_tokens(size_t layer, size_t first_position, size_t token_count, SequenceState& state,
                  float* hidden) override {
    backend_.mix_tokens(layer, first_position, token_count, state, hidden);
  }
  void route(size_t layer, size_t first, size_t count, const BatchBuffers& batch) override {
    backend_.route(layer, first, count, batch);
  }
  void predict(std::span<const uint32_t> layers, const float* hidden, float* logits) override {
    backend_.predict(layers, hidden, logits);
  }
  void expert_gate_up(std::span<const ExpertWork> works, const BatchBuffers& batch) override {
    backend_.expert_gate_up(works, batch);
  }
  void expert_down(std::span<const ExpertWork> works, const BatchBuffers& batch) override {
    backend_.expert_down(works, batch);
  }
  void combine(size_t layer, size_t token_count, const BatchBuffers& batch) override {
    backend_.combine(layer, token_count, batch);
  }
  void prepare_ffn(size_t layer, size_t first, size_t count, const BatchBuffers& batch) override {
    backend_.prepare_ffn(layer, first, count, batch);
  }
  void route_early(size_t layer, size_t first, size_t count, const BatchBuffers& batch) override {
    backend_.route_early(layer, first, count, batch);
  }
  void add_ffn(size_t layer, size_t token_count, const BatchBuffers& batch) override {
    backend_.add_ffn(layer, token_count, batch);
  }
  void output(size_t token_count, const float* hidden, float* logits) override {
    backend_.output(token_count, hidden, logits);
  }

 private:
  Backend& backend_;
};

}  // namespace sluice
