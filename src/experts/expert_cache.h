// The expert cache's bookkeeping: which expert is in which slot, and who has to leave. It moves no
// bytes and starts no reads; given the same calls it makes the same decisions, on any machine and
// without one. One thread at a time.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "experts/eviction.h"
#include "experts/slot_pool.h"
#include "model/expert_id.h"

namespace sluice {

class ExpertCache {
 public:
  /// `expert_counts` has an entry per layer. The pool must outlive the cache, which makes its
  /// slots empty but changes no other state.
  ExpertCache(SlotPool& pool, const std::vector<uint32_t>& expert_counts,
              std::unique_ptr<EvictionPolicy> policy);

  /// The slot that holds or is receiving the expert; kNoSlot when there is none.
  SlotIndex find(ExpertId id) const { return slot_of_[first_expert_[id.layer] + id.index]; }

  /// Tells the policy that an expert in this slot is wanted.
  void touch(SlotIndex slot) { policy_->on_use(slot); }

  /// Binds the expert to a slot of its layer: an empty one, else that of the expert worth least,
  /// which is evicted. kNoSlot when every slot is leased or being read. The slot is empty and
  /// touched on return. REQUIRES: find(id) == kNoSlot.
  SlotIndex bind(ExpertId id);

  /// Forgets every expert; all slots are empty again. REQUIRES: no leases, no reads.
  void clear();

  /// Starts a new count of distinct experts: a prompt, say.
  void mark() { ++mark_; }
  /// Whether this is the first question for the expert since mark().
  bool first_since_mark(ExpertId id) {
    return std::exchange(asked_at_[first_expert_[id.layer] + id.index], mark_) != mark_;
  }

  /// Forgets what a failed slot was to hold; it is empty again. REQUIRES: failed, no leases.
  void discard(SlotIndex slot);

  uint64_t eviction_count() const { return eviction_count_; }

 private:
  static constexpr uint32_t kNoExpert = ~uint32_t{0};

  SlotIndex choose_slot(uint32_t layer) const;
  void unbind(SlotIndex slot);

  SlotPool& pool_;
  std::unique_ptr<EvictionPolicy> policy_;
  std::vector<uint32_t> first_expert_;  ///< [layer], counting experts over all layers
  std::vector<SlotIndex> slot_of_;      ///< [expert], counted over all layers
  std::vector<uint32_t> expert_of_;     ///< [slot]: the expert bound to it
  std::vector<uint64_t> asked_at_;      ///< [expert]: the mark at which it was last asked for
  uint64_t mark_ = 1;
  uint64_t eviction_count_ = 0;
};

}  // namespace sluice
