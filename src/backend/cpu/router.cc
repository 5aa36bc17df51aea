// The router on the CPU: which experts a token uses, and with which weights.
#include "backend/cpu/router.h"

#include <algorithm>

#include "backend/cpu/cpu_backend.h"

namespace sluice {

namespace {

/// The highest score that is in neither list, ties to the lower id; kNoExpert where all are.
int32_t best_of_rest(std::span<const float> scores, std::span<const int32_t> chosen,
                     std::span<const int32_t> also_chosen) {
  int32_t best = kNoExpert;
  for (int32_t i = 0; i < static_cast<int32_t>(scores.size()); ++i) {
    if (best != kNoExpert && !(scores[i] > scores[best])) continue;  // ties stay with the lower id
    if (std::ranges::find(chosen, i) == chosen.end() &&
        std::ranges::find(also_chosen, i) == also_chosen.end())
      best = i;
  }
  return best;
}

}  // namespace

void choose_experts(std::span<const float> scores, const GatingRule& rule,
                    std::span<int32_t> experts, std::span<float> weights) {
  for (size_t rank = 0; rank < experts.size(); ++rank) {
    experts[rank] = best_of_rest(scores, experts.first(rank), {});
    weights[rank] = scores[experts[rank]];
  }
  float sum = 0.0f;
  for (const float weight : weights) sum += weight;
  for (float& weight : weights) {
    if (rule.renormalise) weight /= sum;
    weight *= rule.scale;
  }
}

void choose_runners_up(std::span<const float> scores, std::span<const int32_t> chosen,
                       std::span<int32_t> runners_up) {
  for (size_t rank = 0; rank < runners_up.size(); ++rank)
    runners_up[rank] = best_of_rest(scores, chosen, runners_up.first(rank));
}

void CpuBackend::route(size_t layer, size_t first, size_t count, const BatchBuffers& batch) {
  CHECK(count <= limits_.ubatch_token_max);
  const LayerWeights& weights = map_.dense.layers[layer];
  const float* hidden = batch.hidden + first * config_.hidden_size;
  normalise(hidden, weights.ffn_norm, count);
  const MatmulJob job = input_job(weights.router, count, scratch_.router_logits);
  run_matmuls(pool_, kernels_, {&job, 1});

  const size_t expert_count = weights.router.rows;
  const size_t used = batch.routing.used_count;
  for_tokens(count, [&](size_t token) {
    float* scores = scratch_.router_logits + token * expert_count;
    kernels_.softmax(scores, expert_count);
    const size_t row = (first + token) * used;
    choose_experts({scores, expert_count}, config_.gating, {batch.routing.experts + row, used},
                   {batch.routing.weights + row, used});
    if (batch.routing.runner_up_count > 0)
      choose_runners_up({scores, expert_count}, {batch.routing.experts + row, used},
                        {batch.routing.runners_up, batch.routing.runner_up_count});
    for (size_t format = 0; format < kActivationFormatCount; ++format) {
      const ActivationRows& rows = batch.ffn_input[format];
      if (rows.begin == nullptr) continue;
      write_activations(kernels_, static_cast<ActivationFormat>(format),
                        scratch_.projected + token * config_.hidden_size, 0, config_.hidden_size,
                        config_.hidden_size, rows.row(first + token));
    }
  });
}

}  // namespace sluice
