#include <sched.h>
#include <sys/auxv.h>

#include <algorithm>
#include <fstream>
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
