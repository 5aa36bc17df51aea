#include "experts/contest_policy.h"

namespace sluice {
namespace {

uint32_t expert_total(const std::vector<EvictionContest::Layer>& layers) {
  uint32_t total = 0;
  for (const EvictionContest::Layer& layer : layers) total += layer.expert_count;
  return total;
}

}  // namespace

ContestPolicy::ContestPolicy(const std::vector<EvictionContest::Layer>& layers, uint32_t used_count)
    : used_count_(used_count), contest_(layers, used_count), recency_(expert_total(layers)) {
  for (uint32_t layer = 0; layer < layers.size(); ++layer)
    for (uint32_t index = 0; index < layers[layer].expert_count; ++index)
      ids_.push_back({layer, index});
  chosen_.reserve(EvictionContest::kPromptTokensMax * used_count);
}

void ContestPolicy::on_tokens(uint32_t count) {
  if (count == 1) contest_.begin_token();
}

void ContestPolicy::on_routing(uint32_t layer, std::span<const int32_t> chosen) {
  const size_t token_count = chosen.size() / used_count_;
  const size_t skipped = contest_.tokens_not_looked_at(token_count);
  chosen_.assign(chosen.begin() + static_cast<std::ptrdiff_t>(skipped * used_count_), chosen.end());
  if (token_count == 1)
    contest_.on_routing(layer, chosen_);
  else
    contest_.on_prompt_routing(layer, static_cast<uint32_t>(skipped), chosen_);
}

bool ContestPolicy::leaves_before(uint32_t a, uint32_t b, Ranking ranking) const {
  const ExpertId of_a = ids_[a], of_b = ids_[b];
  if (ranking == Ranking::worth && contest_.takes_place(of_a.layer) &&
      contest_.takes_place(of_b.layer))
    return contest_.leaves_before(of_a, of_b);
  return recency_.leaves_before(a, b, ranking);
}

}  // namespace sluice
