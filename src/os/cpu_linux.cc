#include <sched.h>

#include <algorithm>
#include <thread>

#include "os/cgroup.h"
#include "os/cpu.h"

namespace sluice::os {
namespace {

/// Cores in the affinity mask. Machines with more than 1024 need a larger mask than the fixed
/// cpu_set_t; the kernel says EINVAL until it fits.
size_t affinity_core_count() {
  for (int core_max = 1024; core_max <= 1 << 20; core_max *= 2) {
    cpu_set_t* set = CPU_ALLOC(core_max);
    if (set == nullptr) break;
    const size_t set_bytes = CPU_ALLOC_SIZE(core_max);
    const bool known = sched_getaffinity(0, set_bytes, set) == 0;
    const int count = known ? CPU_COUNT_S(set_bytes, set) : 0;
    CPU_FREE(set);
    if (known) return static_cast<size_t>(count);
  }
  return std::thread::hardware_concurrency();
}

}  // namespace

size_t usable_core_count() {
  const size_t allowed = std::max<size_t>(affinity_core_count(), 1);
  return std::min(allowed, cgroup_core_limit("/").value_or(allowed));
}

}  // namespace sluice::os
