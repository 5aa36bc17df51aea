// What the expert cache and its reads did, counted so that the sums below always hold:
//   lookup_count   = hit_count + join_count + miss_count
//   prefetch_count = useful + wasted + cancelled + prefetched and neither used nor evicted so far
//   demand_read_count = miss_count · parts per expert (when no read has failed)
#pragma once

#include <cstdint>

namespace sluice {

struct ExpertStats {
  uint64_t lookup_count = 0;  ///< questions "is this expert here"
  uint64_t hit_count = 0;     ///< resident
  uint64_t join_count = 0;    ///< already being read
  uint64_t miss_count = 0;    ///< caused demand reads
  uint64_t distinct_count = 0;  ///< of the lookups: the first of an expert since the last mark
  uint64_t eviction_count = 0;
  uint64_t demand_read_count = 0;  ///< requests to the drive, one per part
  uint64_t demand_bytes = 0;       ///< expert bytes they ask for, without what alignment adds

  // Experts for which a guess got a slot, and what became of them.
  uint64_t prefetch_count = 0;
  uint64_t prefetch_useful_count = 0;     ///< used, whether landed (hit) or still in flight (join)
  uint64_t prefetch_wasted_count = 0;     ///< read, and evicted before any use
  uint64_t prefetch_cancelled_count = 0;  ///< given up while being read
  uint64_t prefetch_promoted_count = 0;   ///< of the useful: some of it became a demand read
  uint64_t prefetch_read_count = 0;       ///< requests to the drive, one per part
  uint64_t prefetch_bytes = 0;            ///< expert bytes of all prefetches but the cancelled
  uint64_t prefetch_useful_bytes = 0;

  uint64_t idle_fill_count = 0;  ///< experts read because nobody asked for anything
  uint64_t stall_ns = 0;         ///< computing waited for experts
};

}  // namespace sluice
