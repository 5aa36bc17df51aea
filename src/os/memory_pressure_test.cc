#include "os/memory_pressure.h"

#include <gtest/gtest.h>

#include <string>

#include "os/clock.h"
#include "testing/temp_folder.h"

namespace sluice::os {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;
constexpr const char* kMachine = "proc/pressure/memory";
constexpr const char* kGroup = "sys/fs/cgroup/a/b/memory.pressure";

class MemoryPressureTest : public ::testing::Test {
 protected:
  void stalled(const char* file, uint64_t total_us) {
    const std::string total = std::to_string(total_us);
    root_.write(file, "some avg10=0.12 avg60=0.00 avg300=0.00 total=" + total +
                          "\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n");
  }
  void own_group() {
    root_.write("proc/self/mountinfo",
                "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n");
    root_.write("proc/self/cgroup", "4:memory:/x\n0::/a/b\n");
  }

  TempFolder root_;
};

TEST_F(MemoryPressureTest, NoFilesNoPressure) {
  MemoryPressure pressure(root_.path());
  EXPECT_EQ(pressure.source(), PressureSource::none);
  for (uint64_t i = 1; i < 5; ++i) EXPECT_FALSE(pressure.is_pressed(i * kSecond));
}

TEST_F(MemoryPressureTest, GarbageIsNoSource) {
  for (const char* text :
       {"", "some avg10=0.00", "full total=9\n", "some total=x\n", "some total="}) {
    root_.write(kMachine, text);
    EXPECT_EQ(MemoryPressure(root_.path()).source(), PressureSource::none) << text;
  }
}

TEST_F(MemoryPressureTest, FivePercentOfTheTimeIsPressure) {
  stalled(kMachine, 9'000'000);
  MemoryPressure pressure(root_.path());
  EXPECT_EQ(pressure.source(), PressureSource::machine);
  EXPECT_FALSE(pressure.has_trigger()) << "a file that is not the kernel's is only read";
  EXPECT_FALSE(pressure.is_pressed(10 * kSecond)) << "what was before does not count";
  stalled(kMachine, 9'049'999);
  EXPECT_FALSE(pressure.is_pressed(11 * kSecond));
  stalled(kMachine, 9'100'000);
  EXPECT_TRUE(pressure.is_pressed(12 * kSecond));
  EXPECT_FALSE(pressure.is_pressed(13 * kSecond)) << "it is over";
}

TEST_F(MemoryPressureTest, IsReadTwiceASecondAtMost) {
  stalled(kMachine, 0);
  MemoryPressure pressure(root_.path());
  EXPECT_FALSE(pressure.is_pressed(10 * kSecond));
  stalled(kMachine, 400'000);
  EXPECT_FALSE(pressure.is_pressed(10 * kSecond + kSecond / 2 - 1)) << "not read yet";
  EXPECT_TRUE(pressure.is_pressed(10 * kSecond + kSecond / 2));
}

TEST_F(MemoryPressureTest, TheControlGroupGoesFirst) {
  own_group();
  stalled(kMachine, 0);
  stalled(kGroup, 0);
  MemoryPressure pressure(root_.path());
  EXPECT_EQ(pressure.source(), PressureSource::control_group);
  EXPECT_FALSE(pressure.is_pressed(1 * kSecond));
  stalled(kMachine, 900'000);
  EXPECT_FALSE(pressure.is_pressed(2 * kSecond)) << "others' pressure";
  stalled(kGroup, 900'000);
  EXPECT_TRUE(pressure.is_pressed(3 * kSecond));
}

TEST_F(MemoryPressureTest, AGroupWithoutTheFileLeavesTheMachine) {
  own_group();
  stalled(kMachine, 0);
  EXPECT_EQ(MemoryPressure(root_.path()).source(), PressureSource::machine);
}

TEST_F(MemoryPressureTest, ACounterThatFallsOrBreaksIsNoPressure) {
  stalled(kMachine, 5'000'000);
  MemoryPressure pressure(root_.path());
  EXPECT_FALSE(pressure.is_pressed(1 * kSecond));
  stalled(kMachine, 0);
  EXPECT_FALSE(pressure.is_pressed(2 * kSecond));
  root_.write(kMachine, "");
  EXPECT_FALSE(pressure.is_pressed(3 * kSecond));
  EXPECT_EQ(pressure.source(), PressureSource::none);
}

TEST_F(MemoryPressureTest, ThisMachineCanBeAsked) {
  MemoryPressure pressure;
  const uint64_t start = now_ns();
  for (int i = 0; i < 1000; ++i) pressure.is_pressed(now_ns());
  EXPECT_LT(now_ns() - start, 200'000'000u) << "it never waits";
  MemoryPressure moved = std::move(pressure);
  EXPECT_EQ(pressure.source(), PressureSource::none);  // NOLINT(bugprone-use-after-move)
}

}  // namespace
}  // namespace sluice::os
