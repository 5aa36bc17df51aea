#include "experts/eviction.h"

#include <cmath>

namespace sluice {
namespace {

/// Half-lives after which all worths are scaled down; a double holds 1023 of them.
constexpr double kHalfLivesMax = 256;

}  // namespace

DecayPolicy::DecayPolicy(uint32_t expert_total, uint32_t half_life_tokens)
    : half_life_tokens_(half_life_tokens), worth_(expert_total, 0.0), recency_(expert_total) {}

void DecayPolicy::on_use(uint32_t expert, double weight) {
  worth_[expert] += weight * use_worth_;
  recency_.on_use(expert, weight);
}

void DecayPolicy::on_tokens(uint32_t count) {
  tokens_ += count;
  if (tokens_ > kHalfLivesMax * half_life_tokens_) {
    const double scale = std::exp2(-tokens_ / half_life_tokens_);
    for (double& worth : worth_) worth *= scale;
    tokens_ = 0;
  }
  use_worth_ = std::exp2(tokens_ / half_life_tokens_);
}

bool DecayPolicy::leaves_before(uint32_t a, uint32_t b, Ranking ranking) const {
  if (ranking == Ranking::worth && worth_[a] != worth_[b]) return worth_[a] < worth_[b];
  return recency_.leaves_before(a, b, ranking);
}

}  // namespace sluice
