// The one clock of the engine: monotonic, unaffected by changes of the wall time. Any thread.
#pragma once

#include <cstdint>

namespace sluice::os {

/// Nanoseconds since some fixed point in the past.
uint64_t now_ns();

/// Seconds between two readings of now_ns().
constexpr double seconds_between(uint64_t start_ns, uint64_t end_ns) {
  return static_cast<double>(end_ns - start_ns) * 1e-9;
}

}  // namespace sluice::os
