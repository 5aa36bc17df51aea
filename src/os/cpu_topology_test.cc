#include "os/cpu_topology.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <numeric>
#include <vector>

namespace sluice::os {
namespace {

/// A machine described by files, as the kernel does.
class Machine {
 public:
  Machine()
      : root_(testing::TempDir() + "/machine_" +
              testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::remove_all(root_);
  }
  ~Machine() { std::filesystem::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_ + "/sys/devices/" + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text << '\n';
  }
  void add_cpu(int cpu, const std::string& siblings, int capacity = 0) {
    const std::string folder = "system/cpu/cpu" + std::to_string(cpu);
    write(folder + "/topology/thread_siblings_list", siblings);
    if (capacity > 0) write(folder + "/cpu_capacity", std::to_string(capacity));
  }
  size_t cores_among(std::vector<int> cpus) const { return performance_core_count(root_, cpus); }

 private:
  std::string root_;
};

std::vector<int> first_cpus(int count) {
  std::vector<int> cpus(static_cast<size_t>(count));
  std::iota(cpus.begin(), cpus.end(), 0);
  return cpus;
}

TEST(CpuTopology, WithoutADescriptionEveryCpuIsACore) {
  EXPECT_EQ(Machine().cores_among(first_cpus(6)), 6u);
}

TEST(CpuTopology, SiblingsCountOnce) {
  Machine machine;
  for (int cpu = 0; cpu < 8; ++cpu)
    machine.add_cpu(cpu, std::to_string(cpu % 4) + "," + std::to_string(cpu % 4 + 4));
  EXPECT_EQ(machine.cores_among(first_cpus(8)), 4u);
  EXPECT_EQ(machine.cores_among({0, 4}), 1u);
  EXPECT_EQ(machine.cores_among({4, 5}), 2u);
}

TEST(CpuTopology, SiblingsMayBeARange) {
  Machine machine;
  for (int cpu = 0; cpu < 4; ++cpu) machine.add_cpu(cpu, cpu < 2 ? "0-1" : "2-3");
  EXPECT_EQ(machine.cores_among(first_cpus(4)), 2u);
}

TEST(CpuTopology, EfficiencyCoresOfHybridProcessorsDoNotCount) {
  Machine machine;  // two cores of two threads, four efficiency cores
  for (int cpu = 0; cpu < 4; ++cpu) machine.add_cpu(cpu, cpu < 2 ? "0-1" : "2-3");
  for (int cpu = 4; cpu < 8; ++cpu) machine.add_cpu(cpu, std::to_string(cpu));
  machine.write("cpu_core/cpus", "0-3");
  machine.write("cpu_atom/cpus", "4,5-7");
  EXPECT_EQ(machine.cores_among(first_cpus(8)), 2u);
  EXPECT_EQ(machine.cores_among({3, 4, 7}), 1u);
  EXPECT_EQ(machine.cores_among({4, 5, 7}), 3u) << "where there are no others, they do";
}

TEST(CpuTopology, SlowCoresByCapacityDoNotCount) {
  Machine machine;  // four little, three big, one prime core
  for (int cpu = 0; cpu < 8; ++cpu)
    machine.add_cpu(cpu, std::to_string(cpu), cpu < 4 ? 325 : cpu < 7 ? 870 : 1024);
  EXPECT_EQ(machine.cores_among(first_cpus(8)), 4u);
  EXPECT_EQ(machine.cores_among({0, 1, 2, 3}), 4u);
}

TEST(CpuTopology, ThereIsAlwaysOne) {
  EXPECT_EQ(Machine().cores_among({}), 1u);
}

}  // namespace
}  // namespace sluice::os
