// The state of a slot: the one word that computing threads, the reader and the cache agree on.
//
//   empty ──begin_read──► reading ──last part──► resident ──clear──► empty
//                            └────fail──► failed ──clear──► empty
//
//   reading and resident slots may be leased: a count of holders who rely on the slot staying where
//   it is. A slot under lease is never evicted and its memory never overwritten.
//
//   transition   who may make it                    ordering
//   begin_read   the thread that acquires experts   relaxed: the read's submission publishes it
//   part ready   whoever completes reads            release: who sees the bit sees the bytes
//   fail         whoever completes reads            release
//   lease ±      the thread that acquires experts   relaxed up, release down
//   clear        the thread that acquires experts   acquire: after the last lease's release
//
// The word packs phase (2 bits), ready parts (6 bits) and lease count (24 bits). ready() is a plain
// load: no lock on the computing side.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/check.h"
#include "model/expert_layout.h"

namespace sluice {

enum class SlotPhase : uint32_t { empty, reading, resident, failed };

class SlotState {
 public:
  SlotPhase phase() const { return phase_of(word_.load(std::memory_order_acquire)); }
  uint32_t lease_count() const { return word_.load(std::memory_order_acquire) >> kLeaseShift; }

  /// Whether all of these parts are in memory, visible to this thread.
  bool ready(PartMask parts) const {
    return (parts_of(word_.load(std::memory_order_acquire)) & parts) == parts;
  }

  /// REQUIRES: empty.
  void begin_read() {
    CHECK(word_.load(std::memory_order_acquire) == word(SlotPhase::empty, 0, 0));
    word_.store(word(SlotPhase::reading, 0, 0), std::memory_order_relaxed);
  }

  /// A part has landed; with the last one (of `all`) the slot is resident. Parts of a slot that
  /// has failed may still land; it stays failed.
  void part_ready(PartMask part, PartMask all) {
    uint32_t old = word_.load(std::memory_order_relaxed);
    for (;;) {
      CHECK(phase_of(old) == SlotPhase::reading || phase_of(old) == SlotPhase::failed);
      const PartMask parts = parts_of(old) | part;
      SlotPhase next = phase_of(old);
      if (next == SlotPhase::reading && parts == all) next = SlotPhase::resident;
      const uint32_t wanted = word(next, parts, old >> kLeaseShift);
      if (word_.compare_exchange_weak(old, wanted, std::memory_order_acq_rel)) return;
    }
  }

  /// A part's read has failed. REQUIRES: reading or failed.
  void fail() {
    uint32_t old = word_.load(std::memory_order_relaxed);
    uint32_t wanted;
    do {
      CHECK(phase_of(old) == SlotPhase::reading || phase_of(old) == SlotPhase::failed);
      wanted = word(SlotPhase::failed, parts_of(old), old >> kLeaseShift);
    } while (!word_.compare_exchange_weak(old, wanted, std::memory_order_acq_rel));
  }

  /// REQUIRES: reading or resident.
  void add_lease() {
    const uint32_t old = word_.fetch_add(1u << kLeaseShift, std::memory_order_relaxed);
    CHECK(phase_of(old) == SlotPhase::reading || phase_of(old) == SlotPhase::resident);
  }
  /// REQUIRES: a lease is held.
  void drop_lease() {
    const uint32_t old = word_.fetch_sub(1u << kLeaseShift, std::memory_order_release);
    CHECK((old >> kLeaseShift) > 0);
  }

  /// Makes a slot empty again. REQUIRES: resident or failed, no lease, no read in flight.
  void clear() {
    const uint32_t old = word_.load(std::memory_order_acquire);
    CHECK((old >> kLeaseShift) == 0);
    CHECK(phase_of(old) == SlotPhase::resident || phase_of(old) == SlotPhase::failed);
    word_.store(word(SlotPhase::empty, 0, 0), std::memory_order_relaxed);
  }

 private:
  static constexpr uint32_t kPartShift = 2;
  static constexpr uint32_t kLeaseShift = 8;
  static constexpr uint32_t kPartBits = (1u << (kLeaseShift - kPartShift)) - 1;
  static_assert(kExpertPartCountMax <= kLeaseShift - kPartShift);

  static constexpr uint32_t word(SlotPhase phase, PartMask parts, uint32_t leases) {
    return static_cast<uint32_t>(phase) | (parts << kPartShift) | (leases << kLeaseShift);
  }
  static constexpr SlotPhase phase_of(uint32_t word) { return static_cast<SlotPhase>(word & 3u); }
  static constexpr PartMask parts_of(uint32_t word) { return (word >> kPartShift) & kPartBits; }

  std::atomic<uint32_t> word_{0};
};

}  // namespace sluice
