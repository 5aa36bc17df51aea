#include "tests/support/played_model.h"

#include <algorithm>

#include "backend/cpu/router.h"
#include "base/check.h"

namespace sluice {

ModelRecording::ModelRecording(const ModelConfig& config)
    : layer_count(config.layer_count()),
      expert_count(config.expert_count),
      used_count(config.expert_used_count) {}

void ModelRecording::resize(size_t token_count) {
  token_count_ = token_count;
  experts_.resize(token_count * layer_count * used_count);
  weights_.resize(token_count * layer_count * used_count);
  scores_.resize(token_count * (layer_count + 1) * kScoresPerPlace * expert_count);
}

std::span<int32_t> ModelRecording::experts(size_t token, size_t layer) {
  return {experts_.data() + (token * layer_count + layer) * used_count, used_count};
}

std::span<float> ModelRecording::weights(size_t token, size_t layer) {
  return {weights_.data() + (token * layer_count + layer) * used_count, used_count};
}

std::span<float> ModelRecording::scores(size_t token, size_t place, size_t distance) {
  CHECK(token < token_count_ && place <= layer_count && distance < kScoresPerPlace);
  const size_t row = (token * (layer_count + 1) + place) * kScoresPerPlace + distance;
  return {scores_.data() + row * expert_count, expert_count};
}

void RecordingBackend::embed(std::span<const int32_t> tokens, float* hidden) {
  ForwardingBackend::embed(tokens, hidden);
  step_first_ = recording_.token_count();
  recording_.resize(step_first_ + tokens.size());
  for (size_t token = 0; token < tokens.size(); ++token)
    ask(step_first_ + token, 0, hidden + token * hidden_size_);
}

void RecordingBackend::route(size_t layer, size_t first, size_t count, const BatchBuffers& batch) {
  ForwardingBackend::route(layer, first, count, batch);
  const size_t used = batch.routing.used_count;
  for (size_t token = first; token < first + count; ++token) {
    std::copy_n(batch.routing.experts + token * used, used,
                recording_.experts(step_first_ + token, layer).begin());
    std::copy_n(batch.routing.weights + token * used, used,
                recording_.weights(step_first_ + token, layer).begin());
    ask(step_first_ + token, layer + 1, batch.hidden + token * hidden_size_);
  }
}

/// The router of the place itself and of the layers behind it. (Before layer 0 there is none.)
void RecordingBackend::ask(size_t token, size_t place, const float* hidden) {
  for (size_t distance = 0; distance < ModelRecording::kScoresPerPlace; ++distance) {
    if (place + distance < 1 || place + distance > recording_.layer_count) continue;
    const auto layer = static_cast<uint32_t>(place + distance - 1);
    predict({&layer, 1}, hidden, recording_.scores(token, place, distance).data());
  }
}

void PlayedBackend::embed(std::span<const int32_t> tokens, float*) {
  step_first_ = step_end_;
  step_end_ += tokens.size();
  CHECK(step_end_ <= recording_.token_count());
  place_ = 0;
}

void PlayedBackend::route(size_t layer, size_t first, size_t count, const BatchBuffers& batch) {
  place_ = layer + 1;
  const Routing& routing = batch.routing;
  for (size_t token = first; token < first + count; ++token) {
    std::ranges::copy(recording_.experts(step_first_ + token, layer),
                      routing.experts + token * routing.used_count);
    std::ranges::copy(recording_.weights(step_first_ + token, layer),
                      routing.weights + token * routing.used_count);
  }
  if (routing.runner_up_count == 0) return;
  choose_runners_up(recording_.scores(step_end_ - 1, place_, 0),
                    {routing.experts, routing.used_count},
                    {routing.runners_up, routing.runner_up_count});
}

void PlayedBackend::predict(std::span<const uint32_t> layers, const float*, float* logits) {
  for (const uint32_t layer : layers) {
    std::ranges::copy(recording_.scores(step_end_ - 1, place_, layer + 1 - place_), logits);
    logits += recording_.expert_count;
  }
}

}  // namespace sluice
