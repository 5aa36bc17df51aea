#include <sched.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "os/cgroup.h"
#include "os/cpu.h"
#include "os/cpu_topology.h"

namespace sluice::os {
namespace {

/// The CPUs of the affinity mask; empty if the kernel does not tell. Machines with more than 1024
/// need a larger mask than the fixed cpu_set_t; the kernel says EINVAL until it fits.
std::vector<int> allowed_cpus() {
  std::vector<int> cpus;
  for (int cpu_max = 1024; cpu_max <= 1 << 20; cpu_max *= 2) {
    cpu_set_t* set = CPU_ALLOC(cpu_max);
    if (set == nullptr) break;
    const size_t set_bytes = CPU_ALLOC_SIZE(cpu_max);
    const bool known = sched_getaffinity(0, set_bytes, set) == 0;
    for (int cpu = 0; known && cpu < cpu_max; ++cpu)
      if (CPU_ISSET_S(static_cast<size_t>(cpu), set_bytes, set)) cpus.push_back(cpu);
    CPU_FREE(set);
    if (known) break;
  }
  return cpus;
}

}  // namespace

size_t usable_core_count() {
  const std::vector<int> cpus = allowed_cpus();
  const size_t cores = cpus.empty() ? std::max(std::thread::hardware_concurrency(), 1u)
                                    : performance_core_count("", cpus);
  return std::min(cores, cgroup_core_limit("/").value_or(cores));
}

}  // namespace sluice::os
