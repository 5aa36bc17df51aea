#include "os/memory.h"

#include <gtest/gtest.h>

#include <string>

#include "base/units.h"
#include "os/arena.h"
#include "os/cgroup.h"
#include "testing/temp_folder.h"

namespace sluice::os {
namespace {

// A tree of /proc and /sys as the kernel would show it, below a temporary folder.
class CgroupTest : public ::testing::Test {
 protected:
  void mounts(const std::string& lines) {
    root_.write("proc/self/mountinfo", "22 27 0:21 / /proc rw,relatime - proc proc rw\n" + lines);
  }
  void own_groups(const std::string& lines) { root_.write("proc/self/cgroup", lines); }
  void file(const std::string& name, const std::string& text) { root_.write(name, text + "\n"); }

  CgroupMemory memory() const { return cgroup_memory(root_.path()); }
  std::optional<size_t> cores() const { return cgroup_core_limit(root_.path()); }

  TempFolder root_;
};

constexpr const char* kMountV2 = "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n";
constexpr const char* kMountMemoryV1 =
    "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 master:2 - cgroup cgroup rw,memory\n";
constexpr const char* kMountCpuV1 =
    "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n";

TEST_F(CgroupTest, NoFilesNoLimit) {
  EXPECT_FALSE(memory().left_bytes.has_value());
  EXPECT_FALSE(memory().limit_bytes.has_value());
  EXPECT_FALSE(cores().has_value());
}

TEST_F(CgroupTest, V2TakesTheTightestOfAllAncestors) {
  mounts(kMountV2);
  own_groups("0::/a/b/c\n");
  const std::string top = "sys/fs/cgroup";
  file(top + "/a/memory.max", "8000000");
  file(top + "/a/memory.current", "7500000");
  file(top + "/a/memory.stat", "anon 1\nactive_file 1000000\ninactive_file 500000\nfile 9999999");
  file(top + "/a/b/memory.max", "max");
  file(top + "/a/b/memory.current", "1");
  file(top + "/a/b/c/memory.max", "5000000");
  file(top + "/a/b/c/memory.current", "1000000");
  file(top + "/a/b/c/memory.stat", "active_file 0\ninactive_file 0");
  EXPECT_EQ(memory().limit_bytes, 5'000'000u);  // of c
  EXPECT_EQ(memory().left_bytes, 2'000'000u);   // of a: 8.0 − (7.5 − 1.5) million
}

TEST_F(CgroupTest, V2CountsTheThrottlingLimit) {
  mounts(kMountV2);
  own_groups("0::/job\n");
  file("sys/fs/cgroup/job/memory.max", "max");
  file("sys/fs/cgroup/job/memory.high", "3000000");
  file("sys/fs/cgroup/job/memory.current", "4000000");
  EXPECT_EQ(memory().limit_bytes, 3'000'000u);
  EXPECT_EQ(memory().left_bytes, 0u);  // Over the limit already: nothing, not a huge number.
}

TEST_F(CgroupTest, V2CountsAllThatCanBeReclaimedAndNothingElse) {
  mounts(kMountV2);
  own_groups("0::/job\n");
  const std::string group = "sys/fs/cgroup/job";
  file(group + "/memory.max", "9000000");
  file(group + "/memory.swap.max", "5000000");  // Swapped memory is of no use to us.
  file(group + "/memory.current", "8000000");
  file(group + "/memory.stat",
       "anon 3000000\nfile 3500000\nkernel 1500000\nshmem 2000000\nswapcached 70000\n"
       "inactive_anon 4000000\nactive_anon 1000000\ninactive_file 1000000\nactive_file 500000\n"
       "slab_reclaimable 400000\nslab_unreclaimable 600000\nslab 1000000");
  EXPECT_EQ(memory().left_bytes, 9'000'000u - (8'000'000u - 1'900'000u));
}

TEST_F(CgroupTest, V2LimitOfAGrandparentBesideBusySiblings) {
  mounts(kMountV2);
  own_groups("0::/slice/service/job\n");
  const std::string top = "sys/fs/cgroup/slice";
  file(top + "/memory.max", "10000000");
  file(top + "/memory.current", "9000000");  // most of it by others
  file(top + "/service/memory.high", "8000000");
  file(top + "/service/memory.current", "500000");
  file(top + "/service/job/memory.max", "max");
  file(top + "/service/job/memory.current", "400000");
  EXPECT_EQ(memory().limit_bytes, 8'000'000u);
  EXPECT_EQ(memory().left_bytes, 1'000'000u);
}

TEST_F(CgroupTest, V2InsideAContainerSeesItsGroupAsTheRoot) {
  mounts(kMountV2);
  own_groups("0::/\n");
  file("sys/fs/cgroup/memory.max", "1000000");
  file("sys/fs/cgroup/memory.current", "400000");
  EXPECT_EQ(memory().left_bytes, 600'000u);
}

TEST_F(CgroupTest, V1UsesTheHierarchicalCounters) {
  mounts(kMountMemoryV1);
  own_groups("9:name=systemd:/x\n4:memory:/job/step\n0::/\n");
  const std::string top = "sys/fs/cgroup/memory";
  file(top + "/memory.limit_in_bytes", "9223372036854771712");
  file(top + "/memory.usage_in_bytes", "99999999");
  file(top + "/job/memory.limit_in_bytes", "2000000");
  file(top + "/job/memory.usage_in_bytes", "1500000");
  file(top + "/job/memory.stat",
       "inactive_file 7\ntotal_inactive_file 300000\ntotal_active_file 200000\n"
       "hierarchical_memory_limit 2000000");
  file(top + "/job/step/memory.limit_in_bytes", "9223372036854771712");
  file(top + "/job/step/memory.usage_in_bytes", "100");
  EXPECT_EQ(memory().limit_bytes, 2'000'000u);
  EXPECT_EQ(memory().left_bytes, 1'000'000u);
}

TEST_F(CgroupTest, V1LimitOfAnAncestorThatCannotBeSeen) {
  mounts("35 31 0:32 /docker/ab12 /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n");
  own_groups("4:memory:/docker/ab12\n");
  file("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");
  file("sys/fs/cgroup/memory/memory.usage_in_bytes", "250000");
  file("sys/fs/cgroup/memory/memory.stat", "hierarchical_memory_limit 1000000");
  EXPECT_EQ(memory().limit_bytes, 1'000'000u);
  EXPECT_EQ(memory().left_bytes, 750'000u);
}

TEST_F(CgroupTest, HybridCountsBothVersions) {
  mounts(std::string(kMountMemoryV1) +
         "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
  own_groups("4:memory:/job\n0::/slice\n");
  file("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "6000000");
  file("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "1000000");
  file("sys/fs/cgroup/unified/slice/memory.max", "9000000");
  file("sys/fs/cgroup/unified/slice/memory.current", "5000000");
  EXPECT_EQ(memory().limit_bytes, 6'000'000u);
  EXPECT_EQ(memory().left_bytes, 4'000'000u);
}

TEST_F(CgroupTest, MountsOfOtherGroupsCountForNothing) {
  mounts(std::string("50 1 0:28 /other /var/other/cgroup rw - cgroup2 cgroup2 rw\n") + kMountV2);
  own_groups("0::/mine\n");
  file("var/other/cgroup/memory.max", "10");
  file("sys/fs/cgroup/mine/memory.max", "5000");
  EXPECT_EQ(memory().limit_bytes, 5000u);
}

TEST_F(CgroupTest, AViewFromOutsideUsesTheMountPoint) {
  mounts("50 1 0:28 /.. /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  own_groups("0::/\n");
  file("sys/fs/cgroup/memory.max", "5000");
  EXPECT_EQ(memory().limit_bytes, 5000u);
}

TEST_F(CgroupTest, MountPointsWithBlanksAndSimilarNames) {
  mounts("50 1 0:28 /job /my\\040groups rw - cgroup2 cgroup2 rw\n");
  own_groups("0::/job/x\n");
  file("my groups/x/memory.max", "5000");
  EXPECT_EQ(memory().limit_bytes, 5000u);
  own_groups("0::/jobs/x\n");  // Not below /job: the mount point itself, which has no limit.
  EXPECT_FALSE(memory().limit_bytes.has_value());
}

TEST_F(CgroupTest, GarbageIsNoLimit) {
  mounts("garbage\n\n1 2 3\n- - - -\n" + std::string(kMountV2));
  own_groups("nonsense\n:\n0::/a\n");
  file("sys/fs/cgroup/a/memory.max", "-5");
  file("sys/fs/cgroup/a/cpu.max", "lots and lots");
  EXPECT_FALSE(memory().limit_bytes.has_value());
  EXPECT_FALSE(cores().has_value());
}

TEST_F(CgroupTest, CpuQuotaIsRoundedUpToCores) {
  mounts(kMountV2);
  own_groups("0::/a/b\n");
  file("sys/fs/cgroup/a/cpu.max", "max 100000");
  EXPECT_FALSE(cores().has_value());
  file("sys/fs/cgroup/a/b/cpu.max", "250000 100000");
  EXPECT_EQ(cores(), 3u);
  file("sys/fs/cgroup/a/cpu.max", "200000 100000");
  EXPECT_EQ(cores(), 2u);
  file("sys/fs/cgroup/a/b/cpu.max", "1000 100000");
  EXPECT_EQ(cores(), 1u);
}

TEST_F(CgroupTest, CpuQuotaOfV1) {
  mounts(kMountCpuV1);
  own_groups("3:cpu,cpuacct:/job\n");
  file("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1");
  file("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000");
  EXPECT_FALSE(cores().has_value());
  file("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "400001");
  file("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000");
  EXPECT_EQ(cores(), 5u);
}

TEST_F(CgroupTest, MemoryStateReadsMeminfo) {
  file("proc/meminfo",
       "MemTotal:       24684088 kB\nMemFree:        100 kB\nMemAvailable:    1234567 kB");
  mounts(kMountV2);
  own_groups("0::/\n");
  file("sys/fs/cgroup/memory.max", "5000");
  const MemoryState state = memory_state_under(root_.path().c_str());
  EXPECT_EQ(state.total_bytes, 24684088u * kKiB);
  EXPECT_EQ(state.available_bytes, 1234567u * kKiB);
  EXPECT_EQ(state.cgroup_limit_bytes, 5000u);
  EXPECT_EQ(state.cgroup_left_bytes, 5000u);
}

TEST(Memory, ThisMachineHasSome) {
  const MemoryState state = memory_state();
  EXPECT_GT(state.total_bytes, 64 * kMiB);
  EXPECT_GT(state.available_bytes, 0u);
  EXPECT_LE(state.available_bytes, state.total_bytes);
}

TEST(Memory, ResidentSetFollowsWhatIsTouched) {
  constexpr uint64_t kBytes = 32 * kMiB;
  const uint64_t before = resident_bytes();
  EXPECT_GT(before, 100 * kKiB);
  {
    const Arena arena = *Arena::allocate(kBytes, "a test");
    for (uint64_t i = 0; i < kBytes; i += 4096) arena.begin()[i] = std::byte{1};
    EXPECT_GE(resident_bytes(), before + kBytes * 9 / 10);
  }
  EXPECT_LT(resident_bytes(), before + kBytes / 2);
  EXPECT_GE(resident_peak_bytes(), before + kBytes * 9 / 10);
}

}  // namespace
}  // namespace sluice::os
