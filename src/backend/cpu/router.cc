// The router on the CPU: which experts a token uses, and with which weights.
#include "backend/cpu/router.h"

#include <algorithm>
#include <cstring>

#include "backend/cpu/cpu_backend.h"

namespace sluice {

void choose_experts(std::span<const float> scores, const GatingRule& rule,
                    std::span<int32_t> experts, std::span<float> weights) {
  for (size_t rank = 0; rank < experts.size(); ++rank) {
    const auto chosen = experts.first(rank);
    int32_t best = -1;
    for (int32_t i = 0; i < static_cast<int32_t>(scores.size()); ++i) {
      if (best >= 0 && !(scores[i] > scores[best])) continue;  // ties stay with the lower id
      if (std::ranges::find(chosen, i) == chosen.end()) best = i;
    }
    experts[rank] = best;
    weights[rank] = scores[best];
  }
  float sum = 0.0f;
  for (const float weight : weights) sum += weight;
  for (float& weight : weights) {
    if (rule.renormalise) weight /= sum;
    weight *= rule.scale;
  }
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
