#include "experts/residency_plan.h"

#include <algorithm>

#include "base/units.h"

namespace sluice {
namespace {

uint32_t slots_for(const ResidencyInput::Layer& layer, uint64_t slots, uint32_t used_count) {
  const uint64_t at_least = std::max<uint64_t>(slots, used_count);
  return static_cast<uint32_t>(std::min<uint64_t>(at_least, layer.expert_count));
}

uint64_t bytes_with(const ResidencyInput& input, uint64_t slots) {
  uint64_t bytes = 0;
  for (const auto& layer : input.layers)
    bytes += slots_for(layer, slots, input.used_count) * layer.slot_bytes;
  return bytes;
}

/// The largest common slot count that fits the bytes (or the smallest possible one).
uint64_t common_slot_count(const ResidencyInput& input) {
  uint64_t most = input.used_count;
  for (const auto& layer : input.layers) most = std::max<uint64_t>(most, layer.expert_count);
  uint64_t low = input.used_count;
  while (low < most) {
    const uint64_t middle = (low + most + 1) / 2;
    if (bytes_with(input, middle) <= input.cache_bytes_max)
      low = middle;
    else
      most = middle - 1;
  }
  return low;
}

/// What to tell the user of a plan whose layers get `slots` slots.
void add_note(const ResidencyInput& input, uint64_t slots, ResidencyPlan& plan) {
  const uint64_t floor_bytes = bytes_with(input, input.used_count);
  const uint32_t asked = input.slots_per_layer.value_or(0);
  if (floor_bytes > input.cache_bytes_max) {
    plan.notes.push_back(fmt::format(
        "memory for the expert cache is short: {} are left, {} are used because the "
        "{} experts of a token must fit at once; expect every expert to be read",
        format_bytes(input.cache_bytes_max), format_bytes(floor_bytes), input.used_count));
  } else if (asked > 0 && asked < input.used_count) {
    plan.notes.push_back(
        fmt::format("the expert cache gets {} slots a layer instead of {}: the {} experts of a "
                    "token must fit at once",
                    slots, asked, input.used_count));
  } else if (asked > slots && !plan.all_resident) {
    plan.notes.push_back(fmt::format(
        "the expert cache gets {} slots a layer instead of {}: {} are to be had for experts", slots,
        asked, format_bytes(input.cache_bytes_max)));
  }
}

/// Bytes left over go to layers from the first on, a slot each.
void give_what_is_left(const ResidencyInput& input, ResidencyPlan& plan) {
  for (size_t i = 0; i < input.layers.size(); ++i) {
    const auto& layer = input.layers[i];
    if (plan.slot_counts[i] >= layer.expert_count) continue;
    if (plan.cache_bytes + layer.slot_bytes > input.cache_bytes_max) break;
    ++plan.slot_counts[i];
    plan.cache_bytes += layer.slot_bytes;
  }
}

}  // namespace

ResidencyPlan plan_residency(const ResidencyInput& input) {
  ResidencyPlan plan;
  uint64_t slots = common_slot_count(input);
  const bool asked_fits = input.slots_per_layer && *input.slots_per_layer <= slots;
  if (asked_fits) slots = std::max(*input.slots_per_layer, input.used_count);
  for (const auto& layer : input.layers) {
    plan.slot_counts.push_back(slots_for(layer, slots, input.used_count));
    plan.cache_bytes += plan.slot_counts.back() * layer.slot_bytes;
  }
  if (!asked_fits) give_what_is_left(input, plan);
  plan.all_resident = true;
  for (size_t i = 0; i < input.layers.size(); ++i)
    plan.all_resident &= plan.slot_counts[i] == input.layers[i].expert_count;
  add_note(input, slots, plan);
  return plan;
}

}  // namespace sluice
