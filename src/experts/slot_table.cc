#include "experts/slot_table.h"

#include <algorithm>

#include "base/units.h"

namespace sluice {

uint64_t SlotPlan::bytes() const {
  uint64_t sum = 0;
  for (const Class& slots : classes) sum += slots.slot_count * slots.slot_bytes;
  return sum;
}

uint32_t SlotPlan::slot_total() const {
  uint32_t sum = 0;
  for (const Class& slots : classes) sum += slots.slot_count;
  return sum;
}

SlotPlan plan_layer_pool(const std::vector<uint64_t>& slot_bytes,
                         const std::vector<uint32_t>& slot_counts) {
  CHECK(slot_bytes.size() == slot_counts.size());
  SlotPlan plan;
  plan.quotas = slot_counts;
  for (size_t layer = 0; layer < slot_bytes.size(); ++layer) {
    if (slot_counts[layer] == 0) {
      plan.class_of.push_back(kNoSlotClass);
      continue;
    }
    auto same = std::ranges::find(plan.classes, slot_bytes[layer], &SlotPlan::Class::slot_bytes);
    if (same == plan.classes.end())
      same = plan.classes.insert(same, {.slot_bytes = slot_bytes[layer], .slot_count = 0});
    same->slot_count += slot_counts[layer];
    plan.class_of.push_back(static_cast<uint32_t>(same - plan.classes.begin()));
  }
  return plan;
}

SlotPlan plan_ring_pool(const std::vector<uint64_t>& slot_bytes, uint32_t slot_count,
                        uint64_t granule_bytes) {
  SlotPlan plan;
  plan.classes.push_back({.slot_bytes = round_up(std::ranges::max(slot_bytes), granule_bytes),
                          .slot_count = slot_count});
  for (const uint64_t bytes : slot_bytes) {
    plan.class_of.push_back(bytes == 0 ? kNoSlotClass : 0);
    plan.quotas.push_back(bytes == 0 ? 0 : kNoQuota);
  }
  return plan;
}

SlotTable::SlotTable(SlotPlan plan) : plan_(std::move(plan)) {
  SlotIndex slots = 0;
  for (const SlotPlan::Class& slot_class : plan_.classes) {
    first_slot_.push_back(slots);
    slots += slot_class.slot_count;
  }
  first_slot_.push_back(slots);
  states_ = std::make_unique<SlotState[]>(slots);
}

uint32_t SlotTable::class_of_slot(SlotIndex slot) const {
  const auto above = std::upper_bound(first_slot_.begin(), first_slot_.end(), slot);
  return static_cast<uint32_t>(above - first_slot_.begin()) - 1;
}

}  // namespace sluice
