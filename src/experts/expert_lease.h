// Proof that an expert's slot stays where it is while somebody computes with it.
#pragma once

#include <utility>

#include "experts/slot_table.h"
#include "model/expert_id.h"

namespace sluice {

/// Dropped at the end of its scope. Movable.
class ExpertLease {
 public:
  ExpertLease() = default;
  ExpertLease(ExpertLease&& other) noexcept
      : state_(std::exchange(other.state_, nullptr)), slot_(other.slot_), id_(other.id_) {}
  ExpertLease& operator=(ExpertLease&& other) noexcept {
    drop();
    state_ = std::exchange(other.state_, nullptr);
    slot_ = other.slot_;
    id_ = other.id_;
    return *this;
  }
  ExpertLease(const ExpertLease&) = delete;
  ExpertLease& operator=(const ExpertLease&) = delete;
  ~ExpertLease() { drop(); }

  explicit operator bool() const { return state_ != nullptr; }
  /// Whether these parts may be computed with. REQUIRES: a lease is held.
  bool ready(PartMask parts) const { return state_->ready(parts); }

 private:
  friend class ExpertStore;
  ExpertLease(SlotState& state, SlotIndex slot, ExpertId id)
      : state_(&state), slot_(slot), id_(id) {
    state.add_lease();
  }
  void drop() {
    if (state_ != nullptr) std::exchange(state_, nullptr)->drop_lease();
  }

  SlotState* state_ = nullptr;
  SlotIndex slot_ = kNoSlot;
  ExpertId id_;
};

}  // namespace sluice
