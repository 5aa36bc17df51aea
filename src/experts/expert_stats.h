// What the expert cache and its reads did, counted so that the sums below always hold:
//   lookup_count = hit_count + join_count + miss_count
//   demand_read_count = miss_count · parts per expert (when no read has failed)
//   for guesses of each distance:
//   started_count = useful_count + wasted_count + cancelled_count + those neither used nor gone yet
#pragma once

#include <array>
#include <cstdint>

namespace sluice {

/// Guesses from further away are counted with these.
inline constexpr uint32_t kGuessDistanceMax = 3;

/// Experts for which a guess got a slot, and what became of them.
struct GuessStats {
  uint64_t started_count = 0;
  uint64_t useful_count = 0;     ///< used, whether landed (hit) or still in flight (join)
  uint64_t wasted_count = 0;     ///< read, and gone before any use
  uint64_t cancelled_count = 0;  ///< given up while being read

  /// Read, or begun to be, in vain.
  uint64_t unused_count() const { return wasted_count + cancelled_count; }

  GuessStats& operator+=(const GuessStats& other) {
    started_count += other.started_count;
    useful_count += other.useful_count;
    wasted_count += other.wasted_count;
    cancelled_count += other.cancelled_count;
    return *this;
  }
};

struct ExpertStats {
  uint64_t lookup_count = 0;    ///< questions "is this expert here"
  uint64_t hit_count = 0;       ///< resident
  uint64_t join_count = 0;      ///< already being read
  uint64_t miss_count = 0;      ///< caused demand reads
  uint64_t distinct_count = 0;  ///< of the lookups: the first of an expert since the last mark
  uint64_t eviction_count = 0;
  uint64_t regret_count = 0;       ///< see ExpertCache::regret_count()
  uint64_t demand_read_count = 0;  ///< requests to the drive, one per part
  uint64_t demand_bytes = 0;       ///< expert bytes they ask for, without what alignment adds

  std::array<GuessStats, kGuessDistanceMax + 1> guesses{};  ///< [distance]; 0: next token's
  uint64_t prefetch_promoted_count = 0;  ///< useful ones of which something became a demand read
  uint64_t prefetch_read_count = 0;      ///< requests to the drive, one per part
  uint64_t prefetch_bytes = 0;           ///< expert bytes of all guesses but the cancelled
  uint64_t prefetch_useful_bytes = 0;

  uint64_t idle_fill_count = 0;  ///< experts read because nobody asked for anything
  uint64_t stall_ns = 0;         ///< computing waited for experts

  GuessStats all_guesses() const {
    GuessStats sum;
    for (const GuessStats& of_distance : guesses) sum += of_distance;
    return sum;
  }
};

}  // namespace sluice
