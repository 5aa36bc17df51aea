#include "lookahead/predictor.h"

#include <algorithm>

namespace sluice {
namespace {

/// The first layer with experts is predicted from this far at most: what dense layers further away
/// say of it is hardly better than chance.
constexpr uint32_t kFirstDistanceMax = 2;

static_assert(kDistanceMax <= kPredictLayersMax);

std::vector<uint32_t> expert_counts(const WeightMap& map) {
  std::vector<uint32_t> counts;
  for (const ExpertLayout& layout : map.experts) counts.push_back(layout.expert_count());
  return counts;
}

uint32_t first_with_experts(std::span<const uint32_t> counts) {
  const auto has_experts = [](uint32_t count) { return count > 0; };
  return static_cast<uint32_t>(std::ranges::find_if(counts, has_experts) - counts.begin());
}

}  // namespace

void rank_experts(std::span<const float> scores, std::span<uint32_t> experts) {
  size_t count = 0;
  for (uint32_t id = 0; id < scores.size(); ++id) {
    size_t rank = count;
    while (rank > 0 && scores[id] > scores[experts[rank - 1]]) --rank;
    if (rank == experts.size()) continue;
    count = std::min(count + 1, experts.size());
    std::copy_backward(experts.begin() + rank, experts.begin() + count - 1,
                       experts.begin() + count);
    experts[rank] = id;
  }
}

Predictor::Predictor(Backend& backend, const ModelConfig& config, const WeightMap& map,
                     const Limits& limits, const Correction* correction)
    : backend_(backend),
      limits_{std::min(limits.width_max, config.expert_count), limits.first},
      expert_count_(config.expert_count),
      used_count_(config.expert_used_count),
      correction_(correction),
      expert_counts_(expert_counts(map)),
      first_layer_(first_with_experts(expert_counts_)),
      logits_(kDistanceMax * config.expert_count),
      corrected_(config.expert_count),
      experts_(kDistanceMax * limits_.width_max) {}

std::span<const Prediction> Predictor::predict(uint32_t layer, const TokenState& state,
                                               const Reach& reach) {
  uint32_t distance = std::min(reach.distance, kDistanceMax);
  if (layer < first_layer_)
    distance = limits_.first == FirstLayer::by_demand ? 0 : std::min(distance, kFirstDistanceMax);
  const size_t end = std::min<size_t>(expert_counts_.size(), layer + 1 + distance);
  target_count_ = 0;
  for (uint32_t target = layer + 1; target < end; ++target)
    if (expert_counts_[target] > 0) targets_[target_count_++] = target;
  return ask(layer + 1, state, reach.width);
}

std::span<const Prediction> Predictor::predict_first(const float* embedding, const Reach& reach) {
  target_count_ = 0;
  if (first_layer_ == 0 && limits_.first == FirstLayer::predicted && correction_ != nullptr)
    for (uint32_t target = 0; target < std::min(reach.distance, kFirstDistanceMax); ++target)
      if (target < expert_counts_.size() && expert_counts_[target] > 0 &&
          correction_->has(target, target + 1))
        targets_[target_count_++] = target;
  return ask(0, {.hidden = embedding}, reach.width);
}

/// `next_layer` is the one at distance 1.
std::span<const Prediction> Predictor::ask(uint32_t next_layer, const TokenState& state,
                                           uint32_t width) {
  if (target_count_ == 0) return {};
  backend_.predict({targets_.data(), target_count_}, state.hidden, logits_.data());

  const uint32_t named = std::min(width == 0 ? used_count_ : width, limits_.width_max);
  for (size_t i = 0; i < target_count_; ++i) {
    const uint32_t count = expert_counts_[targets_[i]];
    const uint32_t distance = targets_[i] - next_layer + 1;
    std::ranges::fill(logits_of(i).subspan(count), 0.0f);  // else what another layer left there
    const std::span experts(experts_.data() + i * limits_.width_max, std::min(named, count));
    rank_experts(scores_of(i, distance, state).first(count), experts);
    predictions_[i] = {targets_[i], distance, experts, logits_of(i).first(count)};
  }
  return {predictions_.data(), target_count_};
}

/// What the target's experts are ranked by.
std::span<const float> Predictor::scores_of(size_t target, uint32_t distance,
                                            const TokenState& state) {
  const std::span<const float> logits = logits_of(target);
  if (correction_ == nullptr || !correction_->has(targets_[target], distance)) return logits;
  correction_->apply(targets_[target], distance, {logits, state.experts, state.weights},
                     corrected_);
  return corrected_;
}

}  // namespace sluice
