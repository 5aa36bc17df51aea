// Which experts later layers will want: their own routers, asked early. The residual stream changes
// little from layer to layer, so a later layer's router, applied to the state that stands at this
// layer's router, names most of what that layer will choose once its turn comes.
//
// Only layers with routed experts are predicted. They are predicted from each of the layers before
// them, the dense ones included, so that the first one too is known early. Where the very first
// layer has experts nothing but the token's embedding comes before it: predict_first().
//
// A prediction is a guess about what to read. Nothing that runs depends on it, and asking leaves
// the state as it was. Everything is allocated by the constructor. One thread at a time, the one
// that drives the backend.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "lookahead/correction.h"
#include "lookahead/reach.h"

namespace sluice {

/// What one token is at a layer when its router has spoken.
struct TokenState {
  /// After the layer's attention block. (What shared experts would add is known without any
  /// read and left out here; the place to add it is the caller.)
  const float* hidden = nullptr;
  /// What the router has chosen; empty at a dense layer.
  std::span<const int32_t> experts = {};
  std::span<const float> weights = {};
};

/// The guess about one layer. Valid until the predictor is asked again.
struct Prediction {
  uint32_t layer = 0;
  uint32_t distance = 0;                 ///< layers between asking and being computed
  std::span<const uint32_t> experts;     ///< the most likely first
  std::span<const float> router_logits;  ///< as Backend::predict() gave them, not corrected
};

class Predictor {
 public:
  /// Whether the first layer with experts is predicted too (--moe-stream-lookahead-first).
  enum class FirstLayer : uint8_t { by_demand, predicted };
  struct Limits {
    uint32_t width_max = 64;  ///< sizes the memory; wider reaches are cut
    FirstLayer first = FirstLayer::predicted;
  };

  /// Everything must outlive the predictor; `correction` may be null.
  Predictor(Backend& backend, const ModelConfig& config, const WeightMap& map, const Limits& limits,
            const Correction* correction);

  /// Predicts the layers with experts among layer + 1 … layer + reach.distance, the nearest first.
  std::span<const Prediction> predict(uint32_t layer, const TokenState& state, const Reach& reach);
  /// The same from the embedding, before layer 0's attention. A router understands little of an
  /// embedding (0.35 recall on the demo model, 0.56 corrected), so only what a correction covers is
  /// predicted; none where dense layers come first.
  std::span<const Prediction> predict_first(const float* embedding, const Reach& reach);

 private:
  std::span<const Prediction> ask(uint32_t next_layer, const TokenState& state, uint32_t width);
  std::span<const float> scores_of(size_t target, uint32_t distance, const TokenState& state);
  std::span<float> logits_of(size_t target) {
    return {logits_.data() + target * expert_count_, expert_count_};
  }

  Backend& backend_;
  const Limits limits_;
  const uint32_t expert_count_;  ///< of the layer that has most
  const uint32_t used_count_;
  const Correction* const correction_;
  std::vector<uint32_t> expert_counts_;  ///< [layer]
  uint32_t first_layer_;                 ///< the first that has experts

  std::array<uint32_t, kDistanceMax> targets_{};  ///< layers of the running question
  size_t target_count_ = 0;
  std::array<Prediction, kDistanceMax> predictions_{};
  std::vector<float> logits_;      ///< [target][expert_count]
  std::vector<float> corrected_;   ///< [expert_count]
  std::vector<uint32_t> experts_;  ///< [kDistanceMax][width_max]
};

/// Fills `experts` with the ids of the highest scores, highest first, ties to the lower id; always
/// distinct valid ids, whatever the scores. REQUIRES: experts.size() ≤ scores.size().
void rank_experts(std::span<const float> scores, std::span<uint32_t> experts);

}  // namespace sluice
