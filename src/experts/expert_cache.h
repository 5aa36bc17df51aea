// The expert cache's bookkeeping: which expert is in which slot, and who has to leave. It moves no
// bytes and starts no reads; given the same calls it makes the same decisions, on any machine and
// without one.
//
// A layer below its quota gets an empty slot, or one that the layer furthest above its quota loses;
// a layer at its quota, or to which nobody can give, loses one of its own. Within a layer leaves
// first
//   1. what was prefetched and never used: it is worth nothing,
//   2. then whatever the policy (experts/eviction) ranks lowest.
// Never leaves what is leased or being read. What was predicted in this token for a layer still to
// come never leaves for a prefetch, and for a demand read only when nothing else can.
//
// One thread at a time.
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "experts/eviction.h"
#include "experts/slot_lists.h"
#include "experts/slot_table.h"
#include "model/expert_id.h"

namespace sluice {

/// What a slot is wanted for, in order of how much may leave for it.
enum class SlotUse : uint8_t {
  demand,     ///< computing waits for the expert
  prefetch,   ///< a guess
  idle_fill,  ///< nobody has asked: only an empty slot will do
};

class ExpertCache {
 public:
  struct Options {
    std::vector<uint32_t> expert_counts;  ///< [layer]
    uint32_t used_count = 1;              ///< no layer's quota falls below this
  };
  /// The table must outlive the cache, which makes slots empty but changes no other state.
  ExpertCache(SlotTable& table, const Options& options, std::unique_ptr<EvictionPolicy> policy);

  /// The slot that holds or is receiving the expert; kNoSlot when there is none.
  SlotIndex find(ExpertId id) const { return slot_of_[number_of(id)]; }
  /// The expert bound to a slot. REQUIRES: one is.
  ExpertId id_of(SlotIndex slot) const { return id_of_[slot]; }
  bool is_bound(SlotIndex slot) const { return bound_[slot]; }

  /// Tokens that now pass through the layers: one to decode, or many of a prompt. Predictions made
  /// before are void.
  void begin_tokens(uint32_t count);
  /// The layer whose turn it is, who leaves while it lasts, and what its router chose for a batch,
  /// [token][used].
  void begin_layer(uint32_t layer, Ranking ranking, std::span<const int32_t> chosen = {}) {
    first_layer_ahead_ = layer + 1;
    ranking_ = ranking;
    if (!chosen.empty()) policy_->on_routing(layer, chosen);
  }

  /// The router chose the expert in this slot; see EvictionPolicy::on_use for the weight.
  void use(SlotIndex slot, double weight);
  /// The expert is expected to be chosen in this token; the layer is still to come.
  void predict(ExpertId id) { predicted_at_[number_of(id)] = turn_; }

  /// Gives the expert a slot, which is empty on return; kNoSlot when none can be had now.
  /// REQUIRES: find(id) == kNoSlot.
  SlotIndex bind(ExpertId id, SlotUse use);
  /// Forgets the expert of a slot, which is empty then. REQUIRES: resident or failed, no lease.
  void unbind(SlotIndex slot);
  /// Forgets every expert; all slots are empty again. REQUIRES: no leases, no reads.
  void clear();

  /// Starts a new count of distinct experts: a prompt, say.
  void mark() { ++mark_; }
  /// Whether this is the first question for the expert since mark().
  bool first_since_mark(ExpertId id) {
    return std::exchange(asked_at_[number_of(id)], mark_) != mark_;
  }

  /// Takes a slot of the class out of use: an empty one, else the least useful of the layer that
  /// holds most beyond its quota. The layer with the largest quota pays. kNoSlot when all must
  /// stay. Lending ends. The slot is empty.
  SlotIndex withdraw(uint32_t slot_class);
  /// Puts the slot withdrawn last back into use; kNoSlot when none is out.
  SlotIndex restore(uint32_t slot_class);
  uint32_t withdrawn_count(uint32_t slot_class) const {
    return lists_.count(withdrawn_list(slot_class));
  }

  /// A layer's slots while a long prompt passes through the layers one by one.
  struct Share {
    uint32_t layer;
    uint32_t slot_count;
  };
  /// Lets these layers have so many slots, at the cost of the others of their class, which keep at
  /// least this share of their own quotas. Nothing leaves until it must.
  void lend(std::span<const Share> shares, double kept_share);
  /// Gives every layer its own quota again.
  void end_lending() { quota_ = own_quota_; }
  /// Slots that nothing is bound to.
  uint32_t empty_count() const;
  uint32_t quota(uint32_t layer) const { return quota_[layer]; }
  uint32_t slot_count(uint32_t layer) const { return lists_.count(home_list(layer)); }

  uint64_t eviction_count() const { return eviction_count_; }
  /// Misses of experts that would still be here but for a guess.
  uint64_t regret_count() const { return regret_count_; }
  const SlotTable& table() const { return table_; }

 private:
  // The lists of slots: one for each layer, then for each class what all its layers hold (where
  // there are no quotas), what is empty, and what is withdrawn.
  uint32_t class_list(uint32_t slot_class, uint32_t kind) const {
    return static_cast<uint32_t>(table_.layer_count()) + 3 * slot_class + kind;
  }
  uint32_t empty_list(uint32_t slot_class) const { return class_list(slot_class, 1); }
  uint32_t withdrawn_list(uint32_t slot_class) const { return class_list(slot_class, 2); }
  uint32_t home_list(uint32_t layer) const {
    return own_quota_[layer] == kNoQuota ? class_list(table_.class_of(layer), 0) : layer;
  }
  uint32_t number_of(ExpertId id) const { return first_expert_[id.layer] + id.index; }
  bool is_predicted(SlotIndex slot) const {
    const ExpertId id = id_of_[slot];
    return id.layer >= first_layer_ahead_ && predicted_at_[number_of(id)] == turn_;
  }
  bool may_leave(SlotIndex slot) const {
    const SlotState& state = table_.state(slot);
    return state.phase() == SlotPhase::resident && state.lease_count() == 0;
  }

  /// Thousands that the layers share are visited by index: following links in the order in which
  /// they were used takes twice as long.
  template <typename Visit>
  void for_each_slot(uint32_t list, const Visit& visit) const {
    if (list < table_.layer_count()) {
      for (SlotIndex slot = lists_.first(list); slot != kNoSlot; slot = lists_.next(slot))
        visit(slot);
      return;
    }
    const uint32_t slot_class = (list - static_cast<uint32_t>(table_.layer_count())) / 3;
    for (SlotIndex slot = table_.first_slot(slot_class); slot < table_.end_slot(slot_class); ++slot)
      if (lists_.list_of(slot) == list) visit(slot);
  }

  SlotIndex choose_slot(uint32_t layer, SlotUse use) const;
  SlotIndex least_useful(uint32_t list, SlotUse use) const;
  uint32_t most_over_quota(uint32_t slot_class) const;
  void evict(SlotIndex slot, SlotUse use);
  bool is_regretted(uint32_t expert) const;
  void forgive(SlotIndex slot);
  void lend_class(uint32_t slot_class, std::span<const Share> shares, double kept_share);

  SlotTable& table_;
  const uint32_t used_count_;
  std::unique_ptr<EvictionPolicy> policy_;
  SlotLists lists_;
  std::vector<uint32_t> own_quota_;  ///< [layer], less what is withdrawn
  std::vector<uint32_t> quota_;      ///< [layer], at present

  std::vector<uint32_t> first_expert_;  ///< [layer], counting experts over all layers
  std::vector<SlotIndex> slot_of_;      ///< [expert]
  std::vector<uint64_t> asked_at_;      ///< [expert]: the mark at which it was last asked for
  std::vector<uint64_t> predicted_at_;  ///< [expert]: the turn in which it was last predicted
  std::vector<ExpertId> id_of_;         ///< [slot]
  std::vector<bool> bound_;             ///< [slot]
  std::vector<bool> unused_prefetch_;   ///< [slot]
  std::vector<uint32_t> gone_from_;     ///< [slot]: the expert that left it for a guess
  std::vector<SlotIndex> left_for_;     ///< [expert]: that slot
  std::vector<uint64_t> left_at_;       ///< [expert]: in which turn

  uint32_t first_layer_ahead_ = 0;  ///< the first whose turn in this token is still to come
  Ranking ranking_ = Ranking::worth;
  uint64_t turn_ = 1;
  uint64_t mark_ = 1;
  uint64_t eviction_count_ = 0;
  uint64_t regret_count_ = 0;
};

}  // namespace sluice
