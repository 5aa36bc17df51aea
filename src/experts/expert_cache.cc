#include "experts/expert_cache.h"

namespace sluice {

ExpertCache::ExpertCache(SlotPool& pool, const std::vector<uint32_t>& expert_counts,
                         std::unique_ptr<EvictionPolicy> policy)
    : pool_(pool), policy_(std::move(policy)), expert_of_(pool.slot_total(), kNoExpert) {
  uint32_t experts = 0;
  for (const uint32_t count : expert_counts) {
    first_expert_.push_back(experts);
    experts += count;
  }
  slot_of_.assign(experts, kNoSlot);
  asked_at_.assign(experts, 0);
}

SlotIndex ExpertCache::bind(ExpertId id) {
  CHECK(find(id) == kNoSlot);
  const SlotIndex slot = choose_slot(id.layer);
  if (slot == kNoSlot) return kNoSlot;
  if (expert_of_[slot] != kNoExpert) {
    unbind(slot);
    ++eviction_count_;
  }
  const uint32_t expert = first_expert_[id.layer] + id.index;
  slot_of_[expert] = slot;
  expert_of_[slot] = expert;
  policy_->on_use(slot);
  return slot;
}

/// A layer has some hundred slots at most and a miss costs a read: a scan is never noticed.
SlotIndex ExpertCache::choose_slot(uint32_t layer) const {
  SlotIndex best = kNoSlot;
  const SlotIndex end = pool_.first_slot(layer) + pool_.slot_count(layer);
  for (SlotIndex slot = pool_.first_slot(layer); slot < end; ++slot) {
    if (expert_of_[slot] == kNoExpert) return slot;
    const SlotState& state = pool_.state(slot);
    if (state.phase() != SlotPhase::resident || state.lease_count() > 0) continue;
    if (best == kNoSlot || policy_->leaves_before(slot, best)) best = slot;
  }
  return best;
}

void ExpertCache::clear() {
  for (SlotIndex slot = 0; slot < expert_of_.size(); ++slot)
    if (expert_of_[slot] != kNoExpert) unbind(slot);
}

void ExpertCache::discard(SlotIndex slot) {
  CHECK(pool_.state(slot).phase() == SlotPhase::failed);
  unbind(slot);
}

void ExpertCache::unbind(SlotIndex slot) {
  slot_of_[expert_of_[slot]] = kNoSlot;
  expert_of_[slot] = kNoExpert;
  pool_.state(slot).clear();
}

}  // namespace sluice
