// What one decode step took and what its prefetches were worth: all that the governor sees of the
// world. Plain data.
#pragma once

#include <cstdint>

namespace sluice {

struct StepReport {
  uint64_t step_ns = 0;
  uint64_t stall_ns = 0;       ///< of it: computing waited for experts
  uint64_t drive_busy_ns = 0;  ///< of it: at least one read was in service
  uint32_t miss_count = 0;
  uint32_t prefetch_useful_count = 0;
  uint32_t prefetch_wasted_count = 0;
  uint32_t regret_count = 0;  ///< misses of experts that had left for such a wasted one

  /// Experts that the step would have missed without prefetch.
  uint32_t demand_count() const { return miss_count + prefetch_useful_count; }
};

}  // namespace sluice
