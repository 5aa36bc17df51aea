#include "os/clock.h"

#include <chrono>

namespace sluice::os {

uint64_t now_ns() {
  using std::chrono::nanoseconds;
  const auto since_start = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<nanoseconds>(since_start).count());
}

}  // namespace sluice::os
