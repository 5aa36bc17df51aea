// What the expert cache and its reads did, counted so that the sums below always hold:
//   lookup_count = hit_count + join_count + miss_count
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
  uint64_t stall_ns = 0;           ///< computing waited for experts
};

}  // namespace sluice
