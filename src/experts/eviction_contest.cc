#include "experts/eviction_contest.h"

#include <algorithm>

#include "base/check.h"

namespace sluice {
namespace {

constexpr uint32_t kNone = ~uint32_t{0};
/// Misses lose 2^-10 a step, which halves them in 710; they are kept in units as fine.
constexpr int kMissShift = 10;

constexpr std::array<std::string_view, UseForecast::kOrderCount> kOrderNames = {"recency", "decay",
                                                                                "brief", "steady"};

}  // namespace

std::string_view EvictionContest::order_name(Order order) {
  return kOrderNames[static_cast<size_t>(order)];
}

EvictionContest::EvictionContest(const std::vector<Layer>& layers, uint32_t used_count)
    : used_count_(used_count) {
  for (const Layer& layer : layers) {
    const bool contested = layer.expert_count > layer.slot_count;
    shadows_of_.push_back(contested ? static_cast<uint32_t>(shadows_.size()) : kNone);
    if (!contested) continue;
    Shadows& shadows =
        shadows_.emplace_back(Shadows{.forecast = UseForecast(layer.expert_count, used_count),
                                      .slot_count = std::max(layer.slot_count, used_count),
                                      .holders = std::vector<uint8_t>(layer.expert_count, 0),
                                      .residents = {}});
    for (auto& residents : shadows.residents) residents.reserve(shadows.slot_count);
  }
}

uint64_t EvictionContest::bytes_for(const std::vector<Layer>& layers) {
  uint64_t bytes = 0;
  for (const Layer& layer : layers)
    if (layer.expert_count > layer.slot_count)
      bytes += UseForecast::bytes_for(layer.expert_count) + layer.expert_count +
               kOrderCount * sizeof(uint16_t) * layer.slot_count;
  return bytes;
}

void EvictionContest::begin_token() {
  for (size_t i = 0; i < kOrderCount; ++i) {
    misses_[i] -= misses_[i] >> kMissShift;
    misses_[i] += step_misses_[i] << kMissShift;
  }
  step_misses_.fill(0);
  choose_leader();
}

void EvictionContest::choose_leader() {
  const auto best = std::ranges::min_element(misses_);
  const auto challenger = static_cast<Order>(best - misses_.begin());
  const uint64_t led = misses_[static_cast<size_t>(leader_)];
  uint64_t ahead = led - *best;
  if (challenger == Order::recency) ahead *= 4;
  // ahead > sqrt(led), squared, both in misses.
  if (ahead * ahead > led << kMissShift) leader_ = challenger;
}

void EvictionContest::on_routing(uint32_t layer, std::span<const uint16_t> chosen) {
  if (shadows_of_[layer] == kNone) return;
  Shadows& shadows = shadows_[shadows_of_[layer]];
  shadows.ran_at = ++clock_;
  shadows.forecast.on_token(chosen);
  shadows.forecast.rank_experts();
  for (size_t i = 0; i < kOrderCount; ++i)
    step_misses_[i] += count_misses(shadows, static_cast<Order>(i), chosen);
}

bool EvictionContest::takes_place(uint32_t layer) const {
  return shadows_of_[layer] != kNone;
}

void EvictionContest::on_prompt_routing(uint32_t layer, uint32_t skipped_tokens,
                                        std::span<const uint16_t> chosen) {
  if (shadows_of_[layer] == kNone) return;
  Shadows& shadows = shadows_[shadows_of_[layer]];
  shadows.ran_at = ++clock_;
  shadows.forecast.skip_tokens(skipped_tokens);
  for (; !chosen.empty(); chosen = chosen.subspan(used_count_))
    shadows.forecast.on_token(chosen.first(used_count_));
  shadows.forecast.rank_experts();
}

uint64_t EvictionContest::count_misses(Shadows& shadows, Order order,
                                       std::span<const uint16_t> chosen) {
  uint64_t misses = 0;
  for (const uint16_t expert : chosen) {
    if ((shadows.holders[expert] >> static_cast<int>(order) & 1) != 0) continue;
    ++misses;
    admit(shadows, order, expert);
  }
  return misses;
}

void EvictionContest::admit(Shadows& shadows, Order order, uint16_t expert) {
  const auto bit = static_cast<uint8_t>(1u << static_cast<int>(order));
  shadows.holders[expert] = static_cast<uint8_t>(shadows.holders[expert] | bit);
  auto& residents = shadows.residents[static_cast<size_t>(order)];
  if (residents.size() < shadows.slot_count) {
    residents.push_back(expert);
    return;
  }
  // What this token uses cannot leave; there are at least as many slots as it uses.
  const UseForecast& forecast = shadows.forecast;
  uint16_t* victim = nullptr;
  for (uint16_t& resident : residents) {
    if (forecast.is_chosen(resident)) continue;
    if (victim == nullptr || forecast.leaves_before(order, resident, *victim)) victim = &resident;
  }
  CHECK(victim != nullptr);
  shadows.holders[*victim] = static_cast<uint8_t>(shadows.holders[*victim] & ~bit);
  *victim = expert;
}

/// Of equal worth that leaves which is oldest, then that whose layer ran last: its turn is
/// farthest. Both in one number, with room for 16 million tokens of age.
void EvictionContest::write_keys(uint32_t layer, std::span<LeaveKey> keys) const {
  const Shadows& shadows = shadows_[shadows_of_[layer]];
  const UseForecast& forecast = shadows.forecast;
  constexpr uint64_t kAgeMax = ~uint32_t{0};
  const uint64_t ran_before = kAgeMax - (shadows.ran_at & kAgeMax);
  for (uint32_t expert = 0; expert < forecast.expert_count(); ++expert) {
    const uint64_t youth = kAgeMax - std::min(forecast.age(expert), kAgeMax);
    keys[expert] = {.worth = static_cast<double>(forecast.worth(leader_, expert)),
                    .last_use = youth << 32 | ran_before};
  }
}

}  // namespace sluice
