// The expert store: hands out leases on routed experts, reading from the drive what is not in a
// slot, and reads ahead what is guessed. It joins the cache's bookkeeping to the read queue;
// whoever computes asks it and never learns where an expert came from.
//
//   acquire(id) ─ resident ──► lease, ready at once                       (hit)
//               ─ being read ► lease, ready when its reads land           (join)
//               ─ absent ────► a slot is bound, its parts are read, lease (miss)
//               ─ no slot free ► nothing; try again when a lease has been dropped
//
//   guess(id)   ─► waits in the guess list ─► a slot and reads, in chunks behind demand, as soon as
//                  the drive would be idle ─► hit or join when the router chooses it,
//                  else cancelled when its layer's turn comes, or the first to leave later
//
// Nothing half-read is ever used: a part is ready only when all its bytes are there, and a slot
// whose read failed is never resident. A guess whose read fails is forgotten; if the expert is
// wanted it is read again, and then the error counts. One thread at a time.
#pragma once

#include <array>
#include <atomic>
#include <optional>
#include <span>
#include <vector>

#include "experts/expert_cache.h"
#include "experts/expert_lease.h"
#include "experts/expert_stats.h"
#include "experts/guess_list.h"
#include "experts/slot_pool.h"
#include "io/read_queue.h"

namespace sluice {

/// Where an expert is when its router chooses it.
enum class Whereabouts : uint8_t {
  resident,  ///< in memory, and not only because it was guessed
  coming,    ///< being read for somebody
  guessed,   ///< in memory or being read, only because it was guessed
  absent,
};

class ExpertStore {
 public:
  /// All of these must outlive the store; `layouts` has an entry per layer.
  ExpertStore(SlotPool& pool, std::span<const ExpertLayout> layouts, io::ReadQueue& queue,
              uint32_t used_count, std::unique_ptr<EvictionPolicy> policy);
  /// Waits for its reads in flight.
  ~ExpertStore();
  ExpertStore(const ExpertStore&) = delete;
  ExpertStore& operator=(const ExpertStore&) = delete;

  const ExpertLayout& layout(uint32_t layer) const { return layouts_[layer]; }
  /// Whether all of the expert is in memory now. Counts nothing, changes nothing.
  bool is_resident(ExpertId id) const;
  Whereabouts whereabouts(ExpertId id) const;

  /// Tokens start their way through the layers: one to decode, or many of a prompt.
  void begin_tokens(uint32_t count) { cache_.begin_tokens(count); }
  /// A layer's router has spoken: `chosen` (of a batch, [token][used]) are about to be acquired.
  /// Other guesses for the layer are given up. `ranking` says who leaves if somebody must.
  void begin_layer(uint32_t layer, std::span<const int32_t> chosen, Ranking ranking);

  /// A lease, or nothing when no slot can be had before another lease is dropped or a read has
  /// ended. Reads are handed to the queue and start with the next pump() or wait(). A lookup is
  /// counted when it succeeds. `weight`: see EvictionPolicy::on_use.
  ExpertLease acquire(ExpertId id, double weight);

  /// The matrices. REQUIRES: computing uses only parts that are ready.
  ExpertView view(const ExpertLease& lease) const;

  /// An expert that will probably be chosen: read it if the drive has time.
  void guess(const Guess& guess);
  /// Drops guesses for a layer that wait: better ones are about to come.
  void drop_waiting_guesses(uint32_t layer) { guesses_.drop_layer(layer); }
  /// Drops guesses that wait and gives up those being read, unless somebody waits for them.
  void drop_guesses();
  /// Reads an expert into an empty slot, because the drive is idle. False when there is no room.
  bool fill(ExpertId id);
  size_t waiting_guess_count() const { return guesses_.size(); }

  /// Starts and delivers reads without blocking.
  void pump();
  /// Blocks until a read has landed; the time counts as stall. REQUIRES: some read has not ended.
  void wait();
  bool is_reading() const { return queue_.request_count() > 0; }

  /// The first read error since settle(), if any. The request that sees it must drop its leases
  /// and call give_up().
  const std::optional<Error>& error() const { return error_; }
  /// As settle(), but reads that have not started are given up: the request does not want them. Nor
  /// does it want what layers have borrowed.
  void give_up();
  /// Waits for all reads and forgets failed ones, so that the next request starts clean.
  /// REQUIRES: no lease on a failed slot is held.
  void settle();

  /// Reads every expert of every layer, unless `stop` becomes true; for when all of them have
  /// slots. REQUIRES: no leases, nothing resident.
  Status preload(const std::atomic<bool>* stop = nullptr);

  /// Gives slots of at least `bytes` back to the system, as far as it can: empty ones, then the
  /// least useful. How much it was. REQUIRES: no leases.
  uint64_t give_back(uint64_t bytes);
  /// Takes back slots given back, at most `bytes` of them; gives how much it was.
  uint64_t take_back(uint64_t bytes);
  uint64_t given_back_bytes() const { return given_back_bytes_; }

  /// See ExpertCache.
  void lend(std::span<const ExpertCache::Share> shares, double kept_share) {
    cache_.lend(shares, kept_share);
  }
  void end_lending() { cache_.end_lending(); }
  const ExpertCache& cache() const { return cache_; }

  /// Distinct experts are counted anew from here.
  void mark() { cache_.mark(); }
  /// Empties every slot, as after opening. REQUIRES: no leases.
  void forget_all();

  ExpertStats stats() const;
  const io::ReadQueue& queue() const { return queue_; }

 private:
  /// Why a slot is being read. Whoever joins a guess or a fill turns it into a demand.
  enum class Reason : uint8_t { demand, guess, idle_fill, load };
  /// The reads that fill a slot.
  struct SlotReads {
    std::array<io::RequestHandle, kExpertPartCountMax> parts{};
    uint32_t left_count = 0;  ///< parts that have not ended
    Reason reason = Reason::demand;
  };

  static io::ReadClass read_class_of(Reason reason);
  SlotIndex start_reads(ExpertId id, Reason reason);
  void join(SlotIndex slot);
  void bind_guesses();
  void give_up_guess(SlotIndex slot);
  void note_gone(SlotIndex slot);
  GuessStats& guess_stats(SlotIndex slot) { return stats_.guesses[*guess_distance_[slot]]; }
  void end_reads(SlotIndex slot);
  static void on_part_read(void* context, uint64_t tag, const Error* error);

  SlotPool& pool_;
  std::span<const ExpertLayout> layouts_;
  io::ReadQueue& queue_;
  ExpertCache cache_;
  GuessList guesses_;
  std::vector<SlotReads> reads_;  ///< [slot]
  /// [slot]: how far ahead its expert was guessed, until it is used or gone; in guess statistics
  std::vector<std::optional<uint8_t>> guess_distance_;
  std::vector<SlotIndex> guessed_slots_;  ///< being read and wanted by nobody yet
  std::vector<bool> is_chosen_;           ///< [expert of a layer], during begin_layer
  std::vector<SlotIndex> failed_;         ///< under lease: to be forgotten in settle()
  std::optional<Error> error_;
  uint64_t given_back_bytes_ = 0;
  uint64_t ended_part_count_ = 0;  ///< reads that have ended, well or not
  ExpertStats stats_;
};

}  // namespace sluice
