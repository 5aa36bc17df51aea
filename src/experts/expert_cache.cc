#include "experts/expert_cache.h"

#include <algorithm>

namespace sluice {
namespace {

constexpr uint32_t kNoExpert = ~0u;

}  // namespace

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
      unused_prefetch_(table.slot_total()),
      gone_from_(table.slot_total(), kNoExpert) {
  uint32_t experts = 0;
  for (const uint32_t count : options.expert_counts) {
    first_expert_.push_back(experts);
    experts += count;
  }
  slot_of_.assign(experts, kNoSlot);
  asked_at_.assign(experts, 0);
  predicted_at_.assign(experts, 0);
  left_for_.assign(experts, kNoSlot);
  left_at_.assign(experts, 0);
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
  const uint32_t expert = number_of(id);
  if (use == SlotUse::demand) {
    regret_count_ += is_regretted(expert);
    forgive(slot);
  }
  left_for_[expert] = kNoSlot;
  if (bound_[slot]) evict(slot, use);
  slot_of_[expert] = slot;
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
  struct Candidate {
    SlotIndex slot = kNoSlot;
    uint32_t expert = 0;
    LeaveKey key;
    bool unused_prefetch = false;

    bool leaves_before(const Candidate& other) const {
      if (other.slot == kNoSlot) return true;
      if (unused_prefetch != other.unused_prefetch) return unused_prefetch;
      return key == other.key ? expert < other.expert : key < other.key;
    }
  };
  const std::span<const LeaveKey> keys = policy_->keys(ranking_);
  Candidate best, last_resort;
  for_each_slot(list, [&](SlotIndex slot) {
    const uint32_t expert = number_of(id_of_[slot]);
    const Candidate candidate{slot, expert, keys[expert], unused_prefetch_[slot]};
    if (!candidate.leaves_before(best) || !may_leave(slot)) return;
    if (!is_predicted(slot))
      best = candidate;
    else if (candidate.leaves_before(last_resort))
      last_resort = candidate;
  });
  return best.slot == kNoSlot && use == SlotUse::demand ? last_resort.slot : best.slot;
}

void ExpertCache::evict(SlotIndex slot, SlotUse use) {
  ++eviction_count_;
  // For a guess that follows another in vain the same expert is gone.
  if (use == SlotUse::prefetch && !unused_prefetch_[slot]) {
    forgive(slot);
    const uint32_t expert = number_of(id_of_[slot]);
    gone_from_[slot] = expert;
    left_for_[expert] = slot;
    left_at_[expert] = turn_;
  }
  unbind(slot);
}

/// Whether the expert would still be here if nothing had been guessed. One that left for a right
/// guess would have left for demand, though not in the token that chose both.
bool ExpertCache::is_regretted(uint32_t expert) const {
  const SlotIndex slot = left_for_[expert];
  if (slot == kNoSlot) return false;
  return left_at_[expert] == turn_ || unused_prefetch_[slot] || !bound_[slot];
}

/// The slot's next owner would have taken it from the expert that a guess has taken it from.
void ExpertCache::forgive(SlotIndex slot) {
  if (gone_from_[slot] != kNoExpert) left_for_[gone_from_[slot]] = kNoSlot;
  gone_from_[slot] = kNoExpert;
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
  for (SlotIndex slot = 0; slot < bound_.size(); ++slot) {
    if (bound_[slot]) unbind(slot);
    forgive(slot);
  }
}

}  // namespace sluice
