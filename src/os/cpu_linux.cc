#include "os/cpu.h"

namespace sluice::os {

CpuFeatures cpu_features() {
  CpuFeatures features;
#if defined(__x86_64__)
  // The compiler's run-time library asks CPUID and, for the wide registers, XGETBV.
  __builtin_cpu_init();
  features.avx2_fma_f16c = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  features.avx512 = features.avx2_fma_f16c && __builtin_cpu_supports("avx512f") &&
                    __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                    __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni") &&
                    __builtin_cpu_supports("avx512vbmi");
#endif
  return features;
}

}  // namespace sluice::os
