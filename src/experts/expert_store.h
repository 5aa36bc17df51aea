// The expert store: hands out leases on routed experts, reading from the drive what is not in a
// slot. It joins the cache's bookkeeping to the read queue; whoever computes asks it and never
// learns where an expert came from.
//
//   acquire(id) ─ resident ──► lease, ready at once                       (hit)
//               ─ being read ► lease, ready when its reads land           (join)
//               ─ absent ────► a slot is bound, its parts are read, lease (miss)
//               ─ no slot free ► nothing; try again when a lease has been dropped
//
// Nothing half-read is ever used: a part is ready only when all its bytes are there, and a slot
// whose read failed is never resident. One thread at a time.
#pragma once

#include <atomic>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "experts/expert_cache.h"
#include "experts/expert_stats.h"
#include "io/read_queue.h"

namespace sluice {

/// Proof that an expert's slot stays where it is. Dropped at the end of its scope. Movable.
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

class ExpertStore {
 public:
  /// All of these must outlive the store; `layouts` has an entry per layer.
  ExpertStore(SlotPool& pool, std::span<const ExpertLayout> layouts, io::ReadQueue& queue,
              std::unique_ptr<EvictionPolicy> policy);
  /// Waits for its reads in flight.
  ~ExpertStore();
  ExpertStore(const ExpertStore&) = delete;
  ExpertStore& operator=(const ExpertStore&) = delete;

  const ExpertLayout& layout(uint32_t layer) const { return layouts_[layer]; }
  /// Whether all of the expert is in memory now. Counts nothing, changes nothing.
  bool is_resident(ExpertId id) const;

  /// A lease, or nothing when no slot can be had before another lease is dropped. Reads are handed
  /// to the queue and start with the next pump() or wait(). A lookup is counted when it succeeds.
  ExpertLease acquire(ExpertId id);

  /// The matrices. REQUIRES: computing uses only parts that are ready.
  ExpertView view(const ExpertLease& lease) const;

  /// Starts and delivers reads without blocking.
  void pump() { queue_.pump(); }
  /// Blocks until a read has landed; the time counts as stall. REQUIRES: some read has not ended.
  void wait();

  /// The first read error since settle(), if any. The request that sees it must drop its leases
  /// and call give_up().
  const std::optional<Error>& error() const { return error_; }
  /// As settle(), but reads that have not started are given up: the request does not want them.
  void give_up();
  /// Waits for all reads and forgets failed ones, so that the next request starts clean.
  /// REQUIRES: no lease on a failed slot is held.
  void settle();

  /// Reads every expert of every layer, unless `stop` becomes true; for when all of them have
  /// slots. REQUIRES: no leases, nothing resident.
  Status preload(const std::atomic<bool>* stop = nullptr);

  /// Distinct experts are counted anew from here.
  void mark() { cache_.mark(); }
  /// Empties every slot, as after opening. REQUIRES: no leases, no reads.
  void forget_all() { cache_.clear(); }

  ExpertStats stats() const;

 private:
  void read_parts(ExpertId id, SlotIndex slot, io::ReadClass read_class);
  static void on_part_read(void* context, uint64_t tag, const Error* error);

  SlotPool& pool_;
  std::span<const ExpertLayout> layouts_;
  io::ReadQueue& queue_;
  ExpertCache cache_;
  std::vector<uint32_t> layer_of_;  ///< [slot]
  std::vector<SlotIndex> failed_;   ///< slots to discard when their reads have ended
  std::optional<Error> error_;
  ExpertStats stats_;
};

}  // namespace sluice
