// Which expert leaves when a slot is needed. A policy only ranks: it is told what is used and asked
// which of some slots is worth least; whether a slot may leave at all (leases) is not its business.
// Policies are chosen by name (--moe-stream-evict). One thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "experts/slot_pool.h"

namespace sluice {

class EvictionPolicy {
 public:
  virtual ~EvictionPolicy() = default;

  /// An expert was read into the slot, or a resident one was asked for again.
  virtual void on_use(SlotIndex slot) = 0;
  /// Whether `a` should leave rather than `b`; a strict order.
  virtual bool leaves_before(SlotIndex a, SlotIndex b) const = 0;
};

/// The least recently used leaves first.
class LruPolicy final : public EvictionPolicy {
 public:
  explicit LruPolicy(uint32_t slot_total) : last_use_(slot_total, 0) {}

  void on_use(SlotIndex slot) override { last_use_[slot] = ++clock_; }
  bool leaves_before(SlotIndex a, SlotIndex b) const override {
    return last_use_[a] < last_use_[b];
  }

 private:
  std::vector<uint64_t> last_use_;  ///< [slot], a fresh number at each use
  uint64_t clock_ = 0;
};

}  // namespace sluice
