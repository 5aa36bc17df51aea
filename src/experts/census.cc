#include "experts/census.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace sluice {
namespace {

constexpr uint32_t kDecodeWeight = 4;
constexpr uint32_t kPromptWeight = 1;
constexpr uint64_t kTokensRemembered = 65536;

uint32_t saturate(uint64_t count) {
  return static_cast<uint32_t>(std::min<uint64_t>(count, UINT32_MAX));
}

}  // namespace

UsageCensus::UsageCensus(CensusIdentity identity, uint32_t used_count)
    : identity_(std::move(identity)),
      sum_max_(kTokensRemembered * kDecodeWeight * identity_.layer_count * used_count),
      counts_(size_t{identity_.layer_count} * identity_.expert_count, 0),
      added_(counts_.size(), 0),
      order_(counts_.size()) {}

size_t UsageCensus::place_of(ExpertId expert) const {
  DCHECK(expert.layer < identity_.layer_count && expert.index < identity_.expert_count);
  return size_t{expert.layer} * identity_.expert_count + expert.index;
}

void UsageCensus::add(ExpertId expert, PickSource source, uint32_t pick_count) {
  const uint64_t weight = source == PickSource::decode ? kDecodeWeight : kPromptWeight;
  const size_t place = place_of(expert);
  const uint32_t grown = saturate(counts_[place] + weight * pick_count);
  sum_ += grown - counts_[place];
  counts_[place] = grown;
  added_[place] = saturate(added_[place] + weight * pick_count);
  while (sum_ > sum_max_) halve();
}

void UsageCensus::halve() {
  for (uint32_t& count : counts_) count /= 2;
  for (uint32_t& count : added_) count /= 2;
  sum_ = std::accumulate(counts_.begin(), counts_.end(), uint64_t{0});
}

std::span<const ExpertId> UsageCensus::most_used(uint32_t layer) {
  return rank(list_layer(layer));
}

std::span<const ExpertId> UsageCensus::most_used() {
  for (uint32_t layer = 0; layer < identity_.layer_count; ++layer) list_layer(layer);
  return rank(order_);
}

/// Writes the layer's experts into its part of the room for rankings.
std::span<ExpertId> UsageCensus::list_layer(uint32_t layer) {
  const std::span<ExpertId> experts =
      std::span(order_).subspan(size_t{layer} * identity_.expert_count, identity_.expert_count);
  for (uint32_t index = 0; index < experts.size(); ++index) experts[index] = {layer, index};
  return experts;
}

/// Puts the most used first and leaves the never used out.
std::span<const ExpertId> UsageCensus::rank(std::span<ExpertId> experts) {
  std::sort(experts.begin(), experts.end(), [this](const ExpertId& a, const ExpertId& b) {
    if (count(a) != count(b)) return count(a) > count(b);
    return a.layer != b.layer ? a.layer < b.layer : a.index < b.index;
  });
  const auto end = std::find_if(experts.begin(), experts.end(),
                                [this](const ExpertId& expert) { return count(expert) == 0; });
  return experts.first(static_cast<size_t>(end - experts.begin()));
}

void UsageCensus::join(std::span<const uint32_t> stored) {
  CHECK(stored.size() == counts_.size());
  for (size_t i = 0; i < counts_.size(); ++i)
    counts_[i] = saturate(uint64_t{stored[i]} + added_[i]);
  sum_ = std::accumulate(counts_.begin(), counts_.end(), uint64_t{0});
  while (sum_ > sum_max_) halve();
}

void UsageCensus::mark_stored() {
  std::fill(added_.begin(), added_.end(), 0);
}

}  // namespace sluice
