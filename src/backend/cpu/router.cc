// The router on the CPU: which experts a token uses, and with which weights.
#include "backend/cpu/router.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "backend/cpu/cpu_backend.h"
#include "base/elementary.h"

namespace sluice {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();
/// Weights that all vanish are not divided by their sum; the reference engine has the same least.
constexpr float kWeightSumMin = 0x1p-14f;

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

/// A group is as good as its best expert (DeepSeek-V2), or where scores are sigmoids, its two best
/// (DeepSeek-V3).
void limit_to_groups(const GatingRule& rule, std::span<float> selection) {
  if (rule.group_count <= 1) return;
  const size_t size = selection.size() / rule.group_count;
  const auto rank = [&](size_t group) {
    float best = kNever, second = kNever;
    for (const float score : selection.subspan(group * size, size)) {
      second = std::max(second, std::min(best, score));
      best = std::max(best, score);
    }
    return rule.function == GatingFunction::sigmoid ? best + second : best;
  };
  std::array<float, kGroupsMax> ranks;
  for (size_t group = 0; group < rule.group_count; ++group) ranks[group] = rank(group);
  for (size_t group = 0; group < rule.group_count; ++group) {
    size_t better = 0;
    for (size_t other = 0; other < rule.group_count; ++other)
      better += ranks[other] > ranks[group] || (ranks[other] == ranks[group] && other < group);
    if (better >= rule.group_used_count)
      std::ranges::fill(selection.subspan(group * size, size), kNever);
  }
}

void choose_experts(std::span<const float> scores, std::span<const float> selection,
                    const GatingRule& rule, std::span<int32_t> experts, std::span<float> weights) {
  for (size_t rank = 0; rank < experts.size(); ++rank) {
    experts[rank] = best_of_rest(selection, experts.first(rank), {});
    weights[rank] = scores[experts[rank]];
  }
  float sum = 0.0f;
  for (const float weight : weights) sum += weight;
  for (float& weight : weights) {
    if (rule.renormalise) weight /= std::max(sum, kWeightSumMin);
    weight *= rule.scale;
  }
}

void choose_runners_up(std::span<const float> scores, std::span<const int32_t> chosen,
                       std::span<int32_t> runners_up) {
  for (size_t rank = 0; rank < runners_up.size(); ++rank)
    runners_up[rank] = best_of_rest(scores, chosen, runners_up.first(rank));
}

/// What experts see comes last, so that it is what the scratch memory holds for a router.
void CpuBackend::prepare_ffn(size_t layer, size_t first, size_t count, const BatchBuffers& batch) {
  CHECK(count <= cpu_.limits.ubatch_token_max);
  const LayerWeights& weights = cpu_.map.dense.layers[layer];
  const float* hidden = batch.hidden + first * cpu_.config.hidden_size;
  normalise(hidden, weights.ffn_norm, count);
  write_ffn_input(first, count, batch.shared_input);
  if (!batch.inputs_differ) return;
  if (weights.experts_norm.present()) normalise(hidden, weights.experts_norm, count);
  write_ffn_input(first, count, batch.ffn_input);
}

/// What scratch.projected holds, for those who compute an FFN of the batch.
void CpuBackend::write_ffn_input(size_t first, size_t count, const ActivationRows* rows_by_format) {
  cpu_.for_tokens(count, [&](size_t token) {
    for (size_t format = 0; format < kActivationFormatCount; ++format) {
      const ActivationRows& rows = rows_by_format[format];
      if (rows.begin == nullptr) continue;
      write_activations(cpu_.kernels, static_cast<ActivationFormat>(format),
                        scratch_.projected + token * cpu_.config.hidden_size, 0,
                        cpu_.config.hidden_size, cpu_.config.hidden_size, rows.row(first + token));
    }
  });
}

void CpuBackend::route(size_t layer, size_t first, size_t count, const BatchBuffers& batch) {
  prepare_ffn(layer, first, count, batch);
  const size_t size = cpu_.config.hidden_size;
  const LayerWeights& weights = cpu_.map.dense.layers[layer];
  if (weights.router_norm.present())
    cpu_.for_tokens(count, [&](size_t token) {
      float* row = scratch_.projected + token * size;
      normalise_for_router(weights, batch.hidden + (first + token) * size, row);
      scratch_.input.write(cpu_.kernels, token, row, size);
    });
  choose(layer, first, count, batch);
}

/// What the router of a layer sees of a token.
void CpuBackend::normalise_for_router(const LayerWeights& weights, const float* hidden,
                                      float* row) const {
  const size_t size = cpu_.config.hidden_size;
  const bool own = weights.router_norm.present();
  const Matrix& norm = own ? weights.router_norm : weights.norm_before_experts();
  cpu_.kernels.rms_norm(hidden, floats_of(norm), cpu_.config.rms_epsilon, size, row);
  if (!own) return;
  const float share = 1.0f / std::sqrt(static_cast<float>(size));
  for (float& value : std::span(row, size)) value *= share;
}

void CpuBackend::route_early(size_t layer, size_t first, size_t count, const BatchBuffers& batch) {
  CHECK(count <= cpu_.limits.ubatch_token_max);
  const size_t size = cpu_.config.hidden_size;
  cpu_.for_tokens(count, [&](size_t token) {
    scratch_.input.write(cpu_.kernels, token, batch.hidden + (first + token) * size, size);
  });
  choose(layer, first, count, batch);
}

/// By what scratch.input holds.
void CpuBackend::choose(size_t layer, size_t first, size_t count, const BatchBuffers& batch) {
  const LayerWeights& weights = cpu_.map.dense.layers[layer];
  cpu_.multiply(product_of(weights.router, scratch_.input, count, scratch_.router_logits));

  const size_t expert_count = weights.router.rows;
  const size_t used = batch.routing.used_count;
  cpu_.for_tokens(count, [&](size_t token) {
    const std::span<float> scores(scratch_.router_logits + token * expert_count, expert_count);
    const std::span<float> selection(scratch_.selection + token * expert_count, expert_count);
    score_experts(weights, scores, selection);
    const size_t row = (first + token) * used;
    const std::span<int32_t> chosen(batch.routing.experts + row, used);
    const std::span<float> shares(batch.routing.weights + row, used);
    choose_experts(scores, selection, cpu_.config.gating, chosen, shares);
    if (cpu_.config.gating.function == GatingFunction::softmax_of_chosen)
      cpu_.kernels.softmax(shares.data(), used);
    if (weights.expert_scales.present())
      for (size_t rank = 0; rank < used; ++rank)
        shares[rank] *= floats_of(weights.expert_scales)[chosen[rank]];
    if (batch.routing.runner_up_count > 0)
      choose_runners_up(selection, chosen,
                        {batch.routing.runners_up, batch.routing.runner_up_count});
  });
}

/// Logits become scores, and what experts are chosen by.
void CpuBackend::score_experts(const LayerWeights& weights, std::span<float> scores,
                               std::span<float> selection) const {
  cpu_.add_bias(weights.router_bias, scores.data());
  if (cpu_.config.gating.function == GatingFunction::softmax)
    cpu_.kernels.softmax(scores.data(), scores.size());
  if (cpu_.config.gating.function == GatingFunction::sigmoid)
    for (float& score : scores) score = sigmoid_f32(score);
  std::ranges::copy(scores, selection.begin());
  cpu_.add_bias(weights.selection_bias, selection.data());
  limit_to_groups(cpu_.config.gating, selection);
}

}  // namespace sluice
