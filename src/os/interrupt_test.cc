#include "os/interrupt.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>

namespace sluice::os {
namespace {

// Each case runs in a child process: the flag, once set, stays set.

[[noreturn]] void exit_by_flag(int signal) {
  const std::atomic<bool>& flag = interrupt_flag();
  if (flag || &interrupt_flag() != &flag) std::exit(3);
  std::raise(signal);
  std::exit(interrupt_flag() ? 0 : 4);
}

TEST(InterruptDeathTest, FirstSignalSetsTheFlag) {
  EXPECT_EXIT(exit_by_flag(SIGINT), ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(exit_by_flag(SIGTERM), ::testing::ExitedWithCode(0), "");
}

[[noreturn]] void signal_twice() {
  interrupt_flag();
  std::raise(SIGTERM);
  std::raise(SIGINT);
  std::exit(0);
}

[[noreturn]] void forgive(int signal) {
  const std::atomic<bool>& flag = interrupt_flag();
  std::raise(signal);
  const bool forgiven = forgive_interrupt();
  if (forgiven == flag) std::exit(3);
  if (forgiven) std::raise(signal);
  std::exit(!flag ? 4 : forgiven ? 0 : 1);
}

TEST(InterruptDeathTest, AnInterruptIsForgivenAndATerminationIsNot) {
  EXPECT_EXIT(forgive(SIGINT), ::testing::ExitedWithCode(0), "") << "the next one is the first";
  EXPECT_EXIT(forgive(SIGTERM), ::testing::ExitedWithCode(1), "");
}

TEST(InterruptDeathTest, SecondSignalEndsTheProcess) {
  EXPECT_EXIT(signal_twice(), ::testing::ExitedWithCode(130), "");
}

}  // namespace
}  // namespace sluice::os
