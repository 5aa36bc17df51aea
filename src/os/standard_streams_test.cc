#include "os/standard_streams.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>

namespace sluice::os {
namespace {

// Each case runs in a child process, whose streams it may ruin.

[[noreturn]] void write_to_closed_stream() {
  close(STDOUT_FILENO);
  guard_standard_streams();
  const int opened = dup(STDERR_FILENO);  // what a program would open next
  const bool refused = write(STDOUT_FILENO, "x", 1) == -1 && errno == EBADF;
  std::_Exit(opened > STDERR_FILENO && refused ? 0 : 1);
}

TEST(StandardStreamsDeathTest, ClosedStreamIsNotTakenByAFile) {
  EXPECT_EXIT(write_to_closed_stream(), ::testing::ExitedWithCode(0), "");
}

[[noreturn]] void read_closed_stream() {
  close(STDIN_FILENO);
  guard_standard_streams();
  char byte = 0;
  std::_Exit(read(STDIN_FILENO, &byte, 1) == -1 && errno == EBADF ? 0 : 1);
}

TEST(StandardStreamsDeathTest, ClosedStandardInputCannotBeRead) {
  EXPECT_EXIT(read_closed_stream(), ::testing::ExitedWithCode(0), "");
}

[[noreturn]] void write_to_broken_pipe() {
  guard_standard_streams();
  int ends[2] = {};
  if (pipe(ends) != 0) std::_Exit(2);
  close(ends[0]);
  std::_Exit(write(ends[1], "x", 1) == -1 && errno == EPIPE ? 0 : 1);
}

TEST(StandardStreamsDeathTest, BrokenPipeIsAnError) {
  EXPECT_EXIT(write_to_broken_pipe(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace sluice::os
