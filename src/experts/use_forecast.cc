#include "experts/use_forecast.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace sluice {
namespace {

constexpr uint32_t kOne = 1u << 24;     ///< a share of 1 in rates
constexpr uint32_t kOneFollow = 65535;  ///< and in follows_

// A rate moves by 2^-shift of the way each token, and so halves in about 0.69 · 2^shift tokens.
constexpr int kBriefShift = 3;
constexpr int kDecayShift = 4;
constexpr int kSteadyShift = 5;

// A row of follows_ moves by 1/4 of the way at first and by 1/256 once it has seen 252 tokens.
constexpr uint32_t kFirstSight = 4;
constexpr uint32_t kSeenMax = 252;

void fade(std::vector<uint32_t>& rates, int shift) {
  for (uint32_t& rate : rates) rate -= rate >> shift;
}

}  // namespace

UseForecast::UseForecast(uint32_t expert_count, uint32_t used_count)
    : expert_count_(expert_count),
      used_count_(used_count),
      used_at_(expert_count, 0),
      brief_rate_(expert_count, 0),
      decay_rate_(expert_count, 0),
      steady_rate_(expert_count, 0),
      follows_(size_t{expert_count} * expert_count,
               static_cast<uint16_t>(kOneFollow * used_count / expert_count)),
      seen_count_(expert_count, 0),
      follow_sum_(expert_count, 0) {
  CHECK(used_count >= 1 && used_count <= kUsedCountMax && used_count <= expert_count);
  chosen_.reserve(used_count);
  for (auto& worth : worth_) worth.assign(expert_count, 0);
}

uint64_t UseForecast::bytes_for(uint32_t expert_count) {
  const uint64_t row = sizeof(uint64_t) + (4 + kOrderCount) * sizeof(uint32_t) + 2;
  return (row + uint64_t{expert_count} * sizeof(uint16_t)) * expert_count;
}

void UseForecast::on_token(std::span<const uint16_t> chosen) {
  CHECK(chosen.size() == used_count_);
  ++turn_;
  learn_what_follows(chosen);
  fade(brief_rate_, kBriefShift);
  fade(decay_rate_, kDecayShift);
  fade(steady_rate_, kSteadyShift);
  uint64_t rank = 0;
  for (const uint16_t expert : chosen) {
    brief_rate_[expert] += kOne >> kBriefShift;
    decay_rate_[expert] += kOne >> kDecayShift;
    steady_rate_[expert] += kOne >> kSteadyShift;
    used_at_[expert] = turn_ * kRankMax - rank++;
  }
  chosen_.assign(chosen.begin(), chosen.end());
}

/// Moves the rows of what the token before chose towards what this one chooses.
void UseForecast::learn_what_follows(std::span<const uint16_t> chosen) {
  for (const uint16_t before : chosen_) {
    const int shift = std::bit_width(seen_count_[before] + kFirstSight) - 1;
    if (seen_count_[before] < kSeenMax) ++seen_count_[before];
    uint16_t* row = &follows_[size_t{before} * expert_count_];
    for (uint32_t after = 0; after < expert_count_; ++after)
      row[after] = static_cast<uint16_t>(row[after] - (row[after] >> shift));
    for (const uint16_t after : chosen)
      row[after] = static_cast<uint16_t>(row[after] + (kOneFollow >> shift));
  }
}

/// Sums instead of means: rates are multiplied by k rather than sums divided by it.
void UseForecast::rank_experts() {
  std::ranges::fill(follow_sum_, 0u);
  for (const uint16_t before : chosen_) {
    const uint16_t* row = &follows_[size_t{before} * expert_count_];
    for (uint32_t after = 0; after < expert_count_; ++after) follow_sum_[after] += row[after];
  }
  constexpr uint32_t kScale = kOne >> 16;  // from the shares of follows_ to those of rates
  auto& decay = worth_[static_cast<size_t>(Order::decay)];
  auto& brief = worth_[static_cast<size_t>(Order::brief)];
  auto& steady = worth_[static_cast<size_t>(Order::steady)];
  for (uint32_t expert = 0; expert < expert_count_; ++expert) {
    const uint32_t follow = follow_sum_[expert] * kScale;
    decay[expert] = decay_rate_[expert];
    brief[expert] = brief_rate_[expert] * used_count_ + follow;
    steady[expert] = steady_rate_[expert] * used_count_ + 2 * follow;
  }
}

}  // namespace sluice
