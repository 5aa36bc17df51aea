#include "forward/grouping.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace sluice {

Grouping::Grouping(size_t token_count_max, size_t used_count, size_t expert_count_max)
    : used_count_(used_count),
      older_(std::exp2(-1.0 / kRecencyHalfLife)),
      next_pair_(expert_count_max),
      recency_(expert_count_max),
      token_of_pair_(token_count_max * used_count),
      pair_of_(token_count_max * used_count) {
  groups_.reserve(expert_count_max);
}

void Grouping::group(std::span<const int32_t> experts, size_t expert_count, size_t tokens_behind) {
  CHECK(experts.size() <= pair_of_.size() && expert_count <= next_pair_.size());
  std::fill_n(next_pair_.begin(), expert_count, 0);
  std::fill_n(recency_.begin(), expert_count, 0.0);
  double weight = std::pow(older_, tokens_behind);
  for (size_t i = experts.size(); i-- > 0;) {
    ++next_pair_[static_cast<size_t>(experts[i])];
    recency_[static_cast<size_t>(experts[i])] += weight;
    if (i % used_count_ == 0) weight *= older_;
  }

  groups_.clear();
  uint32_t pair = 0;
  for (uint32_t expert = 0; expert < expert_count; ++expert) {
    const uint32_t count = next_pair_[expert];
    next_pair_[expert] = pair;
    if (count > 0) groups_.push_back({expert, pair, count, recency_[expert]});
    pair += count;
  }
  for (size_t i = 0; i < experts.size(); ++i) {
    const uint32_t place = next_pair_[static_cast<size_t>(experts[i])]++;
    pair_of_[i] = static_cast<int32_t>(place);
    token_of_pair_[place] = static_cast<int32_t>(i / used_count_);
  }
}

}  // namespace sluice
