// What the processor itself tells, by CPUID: the same on every operating system. (An ARM processor
// tells it to the system alone, which passes it on: cpu_linux.cc.) This file is compiled without
// special flags, so that asking is safe on every machine.
#include "os/cpu.h"

#if defined(__x86_64__) || defined(__i386__)
#define SLUICE_CPU_X86 1
#include <cpuid.h>
#endif

#include <cstdint>
#include <cstring>
#include <thread>

namespace sluice::os {

#if SLUICE_CPU_X86

namespace {

struct Registers {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
};

/// All zero where the processor does not know the leaf.
Registers cpuid(unsigned leaf, unsigned subleaf = 0) {
  Registers r;
  if (__get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx) == 0) return {};
  return r;
}

constexpr bool has_bits(uint64_t value, uint64_t bits) {
  return (value & bits) == bits;
}
constexpr unsigned bit(unsigned index) {
  return 1u << index;
}

/// XCR0: which register sets the operating system saves when it switches threads. A processor may
/// have AVX-512 and a system (or a virtual machine) may still not save ZMM. The instruction exists
/// only where CPUID says OSXSAVE.
uint64_t saved_registers() {
  constexpr unsigned kOsxsave = bit(27);
  if (!has_bits(cpuid(1).ecx, kOsxsave)) return 0;
  uint32_t low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return uint64_t{high} << 32 | low;
}

}  // namespace

CpuFeatures cpu_features() {
  constexpr uint64_t kYmmState = 0x06;  // XMM and the upper halves of YMM
  constexpr uint64_t kZmmState = 0xe6;  // those, the mask registers and ZMM
  constexpr unsigned kFma = bit(12), kAvx = bit(28), kF16c = bit(29);            // 1.ecx
  constexpr unsigned kAvx2 = bit(5);                                             // 7.ebx
  constexpr unsigned kF = bit(16), kDq = bit(17), kBw = bit(30), kVl = bit(31);  // 7.ebx
  constexpr unsigned kVbmi = bit(1), kGfni = bit(8), kVnni = bit(11);            // 7.ecx

  const uint64_t saved = saved_registers();
  const Registers basic = cpuid(1);
  const Registers extended = cpuid(7);
  CpuFeatures features;
  features.avx2_fma_f16c = has_bits(saved, kYmmState) && has_bits(basic.ecx, kFma | kAvx | kF16c) &&
                           has_bits(extended.ebx, kAvx2);
  features.avx512 = features.avx2_fma_f16c && has_bits(saved, kZmmState) &&
                    has_bits(extended.ebx, kF | kDq | kBw | kVl) &&
                    has_bits(extended.ecx, kVbmi | kGfni | kVnni);
  return features;
}

std::string cpu_model_name() {
  // Three leaves of 16 characters each hold the name, padded with zeros or spaces.
  constexpr unsigned kNameFirst = 0x80000002, kNameLast = 0x80000004;
  char name[3 * sizeof(Registers) + 1] = {};
  for (unsigned leaf = kNameFirst; leaf <= kNameLast; ++leaf) {
    const Registers part = cpuid(leaf);
    std::memcpy(name + (leaf - kNameFirst) * sizeof(part), &part, sizeof(part));
  }
  std::string text = name;
  text.erase(0, text.find_first_not_of(' '));
  text.erase(text.find_last_not_of(' ') + 1);
  return text.empty() ? "unknown CPU" : text;
}

#elif !defined(__aarch64__)

CpuFeatures cpu_features() {
  return {};
}

std::string cpu_model_name() {
  return "unknown CPU";
}

#endif

void spin_pause() {
#if SLUICE_CPU_X86
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("isb" ::: "memory");  // `yield` is a no-op on most cores; isb waits a little
#else
  std::this_thread::yield();
#endif
}

}  // namespace sluice::os
