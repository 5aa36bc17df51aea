// What the processor and its scheduler allow us: instruction sets (asked of the CPU *and* of the
// operating system, which must save the wide registers) and cores. Any thread.
#pragma once

#include <cstddef>
#include <string>

namespace sluice::os {

struct CpuFeatures {
  bool avx2_fma_f16c = false;  ///< AVX2, FMA and F16C, with the OS saving YMM
  bool avx512 = false;         ///< F, BW, DQ, VL, VNNI, VBMI and GFNI, with the OS saving ZMM
  bool neon_dot = false;       ///< sdot on a 64-bit ARM core
  bool neon_i8mm = false;      ///< and smmla
};
CpuFeatures cpu_features();

/// "AMD EPYC", for reports; "unknown CPU" where the system does not tell.
std::string cpu_model_name();

/// Cores this process should compute on: the physical performance cores (cpu_topology.h) in the
/// affinity mask, cut by the cgroup's CPU quota (rounded up), at least 1.
size_t usable_core_count();

/// Tells the core that this thread is spinning (pause, isb).
void spin_pause();

}  // namespace sluice::os
