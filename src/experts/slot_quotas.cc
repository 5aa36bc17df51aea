// How the expert cache moves slots between layers and out of use.
#include <algorithm>

#include "experts/expert_cache.h"

namespace sluice {

SlotIndex ExpertCache::withdraw(uint32_t slot_class) {
  // The layer that can best spare one pays; in the ring none has a quota, and all pay together.
  uint32_t payer = kNoSlotClass;
  for (uint32_t i = 0; i < own_quota_.size(); ++i)
    if (table_.class_of(i) == slot_class &&
        (payer == kNoSlotClass || own_quota_[i] > own_quota_[payer]))
      payer = i;
  const bool ring = own_quota_[payer] == kNoQuota;
  const uint32_t slots = table_.end_slot(slot_class) - table_.first_slot(slot_class);
  const uint32_t left = ring ? slots - withdrawn_count(slot_class) : own_quota_[payer];
  if (left <= used_count_) return kNoSlot;

  if (!ring) --own_quota_[payer];
  quota_ = own_quota_;
  SlotIndex slot = lists_.first(empty_list(slot_class));
  if (slot == kNoSlot) {
    // All are held, so that somebody holds more than the quotas now say.
    const uint32_t giver = ring ? home_list(payer) : most_over_quota(slot_class);
    slot = least_useful(giver, SlotUse::demand);
  }
  if (slot == kNoSlot) {
    if (!ring) quota_[payer] = ++own_quota_[payer];
    return kNoSlot;
  }
  forgive(slot);
  if (bound_[slot]) evict(slot, SlotUse::demand);
  lists_.move(slot, withdrawn_list(slot_class));
  return slot;
}

SlotIndex ExpertCache::restore(uint32_t slot_class) {
  const SlotIndex slot = lists_.first(withdrawn_list(slot_class));
  if (slot == kNoSlot) return kNoSlot;
  lists_.move(slot, empty_list(slot_class));
  // To the layer that is furthest below what it was planned to have.
  const std::vector<uint32_t>& planned = table_.plan().quotas;
  uint32_t layer = kNoSlotClass;
  for (uint32_t i = 0; i < own_quota_.size(); ++i) {
    if (table_.class_of(i) != slot_class || own_quota_[i] == kNoQuota) continue;
    if (layer == kNoSlotClass || planned[i] - own_quota_[i] > planned[layer] - own_quota_[layer])
      layer = i;
  }
  if (layer != kNoSlotClass) ++own_quota_[layer];
  quota_ = own_quota_;
  return slot;
}

void ExpertCache::lend(std::span<const Share> shares, double kept_share) {
  quota_ = own_quota_;
  for (uint32_t slot_class = 0; slot_class < table_.plan().classes.size(); ++slot_class)
    lend_class(slot_class, shares, kept_share);
}

/// Lenders give in proportion to what they can spare; borrowers are served in their order.
void ExpertCache::lend_class(uint32_t slot_class, std::span<const Share> shares,
                             double kept_share) {
  const auto takes_part = [&](uint32_t layer) {
    return table_.class_of(layer) == slot_class && own_quota_[layer] != kNoQuota;
  };
  const auto spare = [&](uint32_t layer) -> uint64_t {
    const bool borrows = std::ranges::find(shares, layer, &Share::layer) != shares.end();
    if (borrows || !takes_part(layer)) return 0;
    return own_quota_[layer] - static_cast<uint64_t>(own_quota_[layer] * kept_share);
  };
  uint64_t wanted = 0, lendable = 0, lent = 0;
  for (const Share& share : shares)
    if (takes_part(share.layer) && share.slot_count > own_quota_[share.layer])
      wanted += share.slot_count - own_quota_[share.layer];
  for (uint32_t layer = 0; layer < quota_.size(); ++layer) lendable += spare(layer);
  if (lendable == 0) return;
  const uint64_t taken = std::min(wanted, lendable);
  for (uint32_t layer = 0; layer < quota_.size(); ++layer) {
    const uint64_t given = (spare(layer) * taken + lendable - 1) / lendable;
    quota_[layer] -= static_cast<uint32_t>(given);
    lent += given;
  }
  for (const Share& share : shares) {
    if (!takes_part(share.layer) || share.slot_count <= quota_[share.layer]) continue;
    const uint64_t more = std::min<uint64_t>(share.slot_count - quota_[share.layer], lent);
    quota_[share.layer] += static_cast<uint32_t>(more);
    lent -= more;
  }
}

}  // namespace sluice
