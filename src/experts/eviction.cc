#include "experts/eviction.h"

#include <cmath>

namespace sluice {
namespace {

/// Half-lives after which all worths are scaled down; a double holds 1023 of them.
constexpr double kHalfLivesMax = 256;

}  // namespace

DecayPolicy::DecayPolicy(uint32_t expert_total, uint32_t half_life_tokens)
    : half_life_tokens_(half_life_tokens), keys_(expert_total), recency_(expert_total) {}

void DecayPolicy::on_use(uint32_t expert, double weight) {
  recency_.on_use(expert, weight);
  keys_[expert].worth += weight * use_worth_;
  keys_[expert].last_use = recency_.keys(Ranking::recency)[expert].last_use;
}

void DecayPolicy::on_tokens(uint32_t count) {
  tokens_ += count;
  if (tokens_ > kHalfLivesMax * half_life_tokens_) {
    const double scale = std::exp2(-tokens_ / half_life_tokens_);
    for (LeaveKey& key : keys_) key.worth *= scale;
    tokens_ = 0;
  }
  use_worth_ = std::exp2(tokens_ / half_life_tokens_);
}

}  // namespace sluice
