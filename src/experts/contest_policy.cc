#include "experts/contest_policy.h"

#include <algorithm>

namespace sluice {
namespace {

std::vector<uint32_t> number_experts(const std::vector<EvictionContest::Layer>& layers) {
  std::vector<uint32_t> first(1, 0);
  for (const EvictionContest::Layer& layer : layers)
    first.push_back(first.back() + layer.expert_count);
  return first;
}

}  // namespace

std::vector<EvictionContest::Layer> plan_contest(const SlotPlan& plan,
                                                 std::span<const uint32_t> expert_counts) {
  const auto streamed = static_cast<uint32_t>(
      std::ranges::count_if(plan.class_of, [](uint32_t i) { return i != kNoSlotClass; }));
  std::vector<EvictionContest::Layer> layers;
  for (size_t layer = 0; layer < plan.quotas.size(); ++layer) {
    const uint32_t experts = expert_counts[layer];
    uint32_t slots = plan.quotas[layer];
    if (slots == kNoQuota) slots = std::min(plan.slot_total() / streamed, experts - 1);
    layers.push_back({.expert_count = experts, .slot_count = slots});
  }
  return layers;
}

ContestPolicy::ContestPolicy(const std::vector<EvictionContest::Layer>& layers, uint32_t used_count)
    : used_count_(used_count),
      contest_(layers, used_count),
      recency_(number_experts(layers).back()),
      first_expert_(number_experts(layers)),
      keys_(first_expert_.back()) {
  for (uint32_t layer = 0; layer < layers.size(); ++layer)
    is_contested_.insert(is_contested_.end(), layers[layer].expert_count,
                         contest_.takes_place(layer));
  for (uint32_t layer = 0; layer < layers.size(); ++layer) rank_layer(layer);
  chosen_.reserve(EvictionContest::kPromptTokensMax * used_count);
}

void ContestPolicy::on_tokens(uint32_t count) {
  if (count != 1) return;
  const EvictionContest::Order led = contest_.leader();
  contest_.begin_token();
  if (contest_.leader() == led) return;
  for (uint32_t layer = 0; layer + 1 < first_expert_.size(); ++layer) rank_layer(layer);
}

void ContestPolicy::on_routing(uint32_t layer, std::span<const int32_t> chosen) {
  const size_t token_count = chosen.size() / used_count_;
  const size_t skipped = contest_.tokens_not_looked_at(token_count);
  chosen_.assign(chosen.begin() + static_cast<std::ptrdiff_t>(skipped * used_count_), chosen.end());
  if (token_count == 1)
    contest_.on_routing(layer, chosen_);
  else
    contest_.on_prompt_routing(layer, static_cast<uint32_t>(skipped), chosen_);
  rank_layer(layer);
}

void ContestPolicy::on_use(uint32_t expert, double weight) {
  recency_.on_use(expert, weight);
  if (!is_contested_[expert]) keys_[expert] = recency_.keys(Ranking::recency)[expert];
}

void ContestPolicy::rank_layer(uint32_t layer) {
  const uint32_t first = first_expert_[layer];
  if (contest_.takes_place(layer))
    contest_.write_keys(layer, std::span(keys_).subspan(first, first_expert_[layer + 1] - first));
}

}  // namespace sluice
