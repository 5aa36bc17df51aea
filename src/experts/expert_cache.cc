#include "experts/expert_cache.h"

#include <algorithm>

namespace sluice {

ExpertCache::ExpertCache(SlotTable& table, const Options& options,
                         std::unique_ptr<EvictionPolicy> policy)
    : table_(table),
      used_count_(options.used_count),
      policy_(std::move(policy)),
      lists_(table.slot_total(),
             static_cast<uint32_t>(table.layer_count() + 3 * table.plan().classes.size())),
      own_quota_(table.plan().quotas),
      quota_(own_quota_),
      id_of_(table.slot_total()),
      bound_(table.slot_total()),
      unused_prefetch_(table.slot_total()) {
  uint32_t experts = 0;
  for (const uint32_t count : options.expert_counts) {
    first_expert_.push_back(experts);
    experts += count;
  }
  slot_of_.assign(experts, kNoSlot);
  asked_at_.assign(experts, 0);
  predicted_at_.assign(experts, 0);
  for (uint32_t i = 0; i < table.plan().classes.size(); ++i)
    for (SlotIndex slot = table.end_slot(i); slot-- > table.first_slot(i);)
      lists_.insert(slot, empty_list(i));  // the lowest in front
}

void ExpertCache::begin_tokens(uint32_t count) {
  ++turn_;
  first_layer_ahead_ = 0;
  policy_->on_tokens(count);
}

void ExpertCache::use(SlotIndex slot, double weight) {
  policy_->on_use(number_of(id_of_[slot]), weight);
  unused_prefetch_[slot] = false;
}

SlotIndex ExpertCache::bind(ExpertId id, SlotUse use) {
  CHECK(find(id) == kNoSlot);
  const SlotIndex slot = choose_slot(id.layer, use);
  if (slot == kNoSlot) return kNoSlot;
  if (bound_[slot]) evict(slot);
  slot_of_[number_of(id)] = slot;
  id_of_[slot] = id;
  bound_[slot] = true;
  unused_prefetch_[slot] = use == SlotUse::prefetch;
  lists_.move(slot, home_list(id.layer));
  return slot;
}

SlotIndex ExpertCache::choose_slot(uint32_t layer, SlotUse use) const {
  const uint32_t slot_class = table_.class_of(layer);
  const uint32_t home = home_list(layer);
  const bool entitled = lists_.count(home) < quota_[layer];
  if (entitled && lists_.count(empty_list(slot_class)) > 0)
    return lists_.first(empty_list(slot_class));
  if (use == SlotUse::idle_fill) return kNoSlot;
  if (entitled && quota_[layer] != kNoQuota) {
    const uint32_t giver = most_over_quota(slot_class);
    const SlotIndex slot = giver == kNoSlotClass ? kNoSlot : least_useful(giver, use);
    if (slot != kNoSlot) return slot;
  }
  return least_useful(home, use);
}

/// The list of the layer that holds most beyond its quota; kNoSlotClass when there is none.
uint32_t ExpertCache::most_over_quota(uint32_t slot_class) const {
  uint32_t giver = kNoSlotClass, most = 0;
  for (uint32_t layer = 0; layer < quota_.size(); ++layer) {
    if (table_.class_of(layer) != slot_class || slot_count(layer) <= quota_[layer]) continue;
    if (slot_count(layer) - quota_[layer] <= most) continue;
    most = slot_count(layer) - quota_[layer];
    giver = home_list(layer);
  }
  return giver;
}

/// A layer has some hundred slots, the ring a few thousand, and a miss costs a read, which takes a
/// hundred times as long as this scan. Most slots are worth more than the best so far, which is
/// asked first.
SlotIndex ExpertCache::least_useful(uint32_t list, SlotUse use) const {
  const std::span<const LeaveKey> keys = policy_->keys(ranking_);
  const auto leaves_before = [&](SlotIndex a, SlotIndex b) {
    if (unused_prefetch_[a] != unused_prefetch_[b]) return static_cast<bool>(unused_prefetch_[a]);
    const uint32_t of_a = number_of(id_of_[a]), of_b = number_of(id_of_[b]);
    return keys[of_a] == keys[of_b] ? of_a < of_b : keys[of_a] < keys[of_b];
  };
  SlotIndex best = kNoSlot, last_resort = kNoSlot;
  for (SlotIndex slot = lists_.first(list); slot != kNoSlot; slot = lists_.next(slot)) {
    if (best != kNoSlot && !leaves_before(slot, best)) continue;
    if (!may_leave(slot)) continue;
    if (!is_predicted(slot))
      best = slot;
    else if (last_resort == kNoSlot || leaves_before(slot, last_resort))
      last_resort = slot;
  }
  return best == kNoSlot && use == SlotUse::demand ? last_resort : best;
}

void ExpertCache::evict(SlotIndex slot) {
  ++eviction_count_;
  unbind(slot);
}

void ExpertCache::unbind(SlotIndex slot) {
  slot_of_[number_of(id_of_[slot])] = kNoSlot;
  bound_[slot] = false;
  unused_prefetch_[slot] = false;
  lists_.move(slot, empty_list(table_.class_of_slot(slot)));
  table_.state(slot).clear();
}

uint32_t ExpertCache::empty_count() const {
  uint32_t count = 0;
  for (uint32_t i = 0; i < table_.plan().classes.size(); ++i) count += lists_.count(empty_list(i));
  return count;
}

void ExpertCache::clear() {
  for (SlotIndex slot = 0; slot < bound_.size(); ++slot)
    if (bound_[slot]) unbind(slot);
}

}  // namespace sluice
