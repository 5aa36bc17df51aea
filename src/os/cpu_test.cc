#include "os/cpu.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <thread>

namespace sluice::os {
namespace {

/// The value of a line "key : value" of /proc/cpuinfo: the kernel's own reading of the processor.
std::string cpuinfo_value(const std::string& key) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (line.rfind(key, 0) == 0 && colon != std::string::npos) return line.substr(colon + 2);
  }
  return {};
}

TEST(Cpu, FeaturesAgreeWithTheKernel) {
#if defined(__aarch64__)
  constexpr const char* kKey = "Features";
#else
  constexpr const char* kKey = "flags";
#endif
  std::istringstream words(cpuinfo_value(kKey));
  std::set<std::string> flags;
  for (std::string word; words >> word;) flags.insert(word);
  if (flags.empty()) GTEST_SKIP() << "no line of " << kKey << " in /proc/cpuinfo";
  const auto has_all = [&](std::initializer_list<const char*> names) {
    for (const char* name : names) {
      if (!flags.contains(name)) return false;
    }
    return true;
  };
  const bool avx2 = has_all({"avx2", "fma", "f16c"});
  EXPECT_EQ(cpu_features().avx2_fma_f16c, avx2);
  EXPECT_EQ(cpu_features().avx512, avx2 && has_all({"avx512f", "avx512bw", "avx512dq", "avx512vl",
                                                    "avx512_vnni", "avx512vbmi", "gfni"}));
  EXPECT_EQ(cpu_features().neon_dot, has_all({"asimddp"}));
  EXPECT_EQ(cpu_features().neon_i8mm, has_all({"asimddp", "i8mm"}));
}

TEST(Cpu, NameIsWhatTheKernelReports) {
  const std::string expected = cpuinfo_value("model name");
  if (expected.empty()) GTEST_SKIP() << "no model name in /proc/cpuinfo";
  EXPECT_EQ(cpu_model_name(), expected);
}

TEST(Cpu, CoreCountFollowsTheAffinityMask) {
  const size_t before = usable_core_count();
  EXPECT_GE(before, 1u);
  EXPECT_LE(before, std::thread::hardware_concurrency());
  size_t pinned = 0;
  std::thread([&] {  // A thread of its own, so that the mask of the test program stays.
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(static_cast<size_t>(sched_getcpu()), &set);
    ASSERT_EQ(sched_setaffinity(0, sizeof(set), &set), 0);
    pinned = usable_core_count();
  })
      .join();
  EXPECT_EQ(pinned, 1u);
}

}  // namespace
}  // namespace sluice::os
