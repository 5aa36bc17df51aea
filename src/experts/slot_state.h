// The state of a slot: the one word that computing threads, the reader and the expert cache agree
// on, for the pools of the layers and for the ring pool alike.
//
//   empty ──begin_read──► reading ──last part──► resident ──clear──► empty
//                            └──fail, give up──► failed ──clear──► empty
//
//   reading and resident slots may be leased: a count of holders who rely on the slot staying where
//   it is. A slot under lease is never evicted and its memory never overwritten.
//
//   transition   who may make it                    ordering
//   begin_read   the thread that acquires experts   relaxed: the read's submission publishes it
//   part ready   whoever completes reads            release: who sees the bit sees the bytes
//   fail         whoever completes reads            release
//   give up      the thread that acquires experts   as fail; it may come after the last part
//   lease +      the thread that acquires experts   relaxed; it may come after a failure
//   lease −      whoever holds it                   release
//   clear        the thread that acquires experts   acquire: after the last lease's release
//
// `failed` says that the slot's bytes will not be whole: its read failed, or nobody wants it any
// more. Either way parts may still land in it, so it is cleared when its reads have ended, not
// before. Whether reads are in flight is not in the word; whoever clears must know.
//
//   the ring pool's words   here                  in a layer's pool
//   empty                   empty                 empty
//   loading                 reading               read for a demand, or prefetched
//   ready                   resident, no lease    in the cache; retained until evicted
//   leased (n)              resident, n leases    being computed (a lease may come while reading)
//   failed                  failed                failed, or cancelled
//
// The word packs phase (2 bits), ready parts (6 bits) and lease count (24 bits). ready() is a plain
// load: no lock on the computing side. tests/model_check holds the machine against every
// interleaving of its threads.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/check.h"
#include "model/expert_layout.h"

namespace sluice {

enum class SlotPhase : uint32_t {
  empty,
  reading,
  resident,
  failed,  ///< or given up
};

class SlotState {
 public:
  SlotPhase phase() const { return phase_of(word_.load(std::memory_order_acquire)); }
  uint32_t lease_count() const { return leases_of(word_.load(std::memory_order_acquire)); }

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
    replace([&](uint32_t old) {
      CHECK(phase_of(old) == SlotPhase::reading || phase_of(old) == SlotPhase::failed);
      const PartMask parts = parts_of(old) | part;
      const bool is_last = phase_of(old) == SlotPhase::reading && parts == all;
      return word(is_last ? SlotPhase::resident : phase_of(old), parts, leases_of(old));
    });
  }

  /// A part's read has failed. REQUIRES: reading or failed.
  void fail() {
    replace([](uint32_t old) {
      CHECK(phase_of(old) == SlotPhase::reading || phase_of(old) == SlotPhase::failed);
      return word(SlotPhase::failed, parts_of(old), leases_of(old));
    });
  }

  /// Nobody wants what is being read: the slot is failed from here on. False where the last part
  /// was faster and the slot is resident. REQUIRES: not empty, no lease.
  bool try_give_up() {
    const uint32_t old = replace([](uint32_t seen) {
      CHECK(phase_of(seen) != SlotPhase::empty && leases_of(seen) == 0);
      if (phase_of(seen) == SlotPhase::resident) return seen;
      return word(SlotPhase::failed, parts_of(seen), 0);
    });
    return phase_of(old) != SlotPhase::resident;
  }

  /// A lease, unless the read has failed: for those who cannot exclude that it does at this very
  /// moment. REQUIRES: not empty.
  bool try_add_lease() {
    const uint32_t old = replace([](uint32_t seen) {
      CHECK(phase_of(seen) != SlotPhase::empty);
      if (phase_of(seen) == SlotPhase::failed) return seen;
      return seen + (1u << kLeaseShift);
    });
    return phase_of(old) != SlotPhase::failed;
  }
  /// REQUIRES: reading or resident, and no other thread completes reads meanwhile.
  void add_lease() {
    const uint32_t old = word_.fetch_add(1u << kLeaseShift, std::memory_order_relaxed);
    CHECK(phase_of(old) == SlotPhase::reading || phase_of(old) == SlotPhase::resident);
  }
  /// REQUIRES: a lease is held.
  void drop_lease() {
    const uint32_t old = word_.fetch_sub(1u << kLeaseShift, std::memory_order_release);
    CHECK(leases_of(old) > 0);
  }

  /// Makes a slot empty again. REQUIRES: resident or failed, no lease, no read in flight.
  void clear() {
    const uint32_t old = word_.load(std::memory_order_acquire);
    CHECK(leases_of(old) == 0);
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
  static constexpr uint32_t leases_of(uint32_t word) { return word >> kLeaseShift; }

  /// Puts what `next` makes of the word in its place, as one step; the word that was there.
  template <typename Next>
  uint32_t replace(const Next& next) {
    uint32_t old = word_.load(std::memory_order_acquire);
    while (!word_.compare_exchange_weak(old, next(old), std::memory_order_acq_rel)) continue;
    return old;
  }

  std::atomic<uint32_t> word_{0};
};

}  // namespace sluice
