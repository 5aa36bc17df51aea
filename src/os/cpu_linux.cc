#include <sched.h>
#include <sys/auxv.h>

#include <algorithm>
#include <fstream>
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

#if defined(__aarch64__)

CpuFeatures cpu_features() {
  constexpr unsigned long kDot = 1ul << 20;   // HWCAP_ASIMDDP
  constexpr unsigned long kI8mm = 1ul << 13;  // HWCAP2_I8MM; the names are newer than some headers
  CpuFeatures features;
  features.neon_dot = (getauxval(AT_HWCAP) & kDot) != 0;
  features.neon_i8mm = features.neon_dot && (getauxval(AT_HWCAP2) & kI8mm) != 0;
  return features;
}

/// The board's name from its device tree ("Raspberry Pi 5 Model B Rev 1.0"): cores have numbers
/// only. Servers have no such tree.
std::string cpu_model_name() {
  std::ifstream file("/sys/firmware/devicetree/base/model");
  std::string model;
  std::getline(file, model, '\0');
  return model.empty() ? "unknown CPU" : model;
}

#endif

}  // namespace sluice::os
