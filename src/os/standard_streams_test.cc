#include "os/standard_streams.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
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

/// In a child whose standard input is a pipe that holds `text` and then ends.
Result<std::string> read_after(const std::string& text, uint64_t bytes_max, bool stopped) {
  int ends[2] = {};
  if (pipe(ends) != 0) std::_Exit(2);
  if (write(ends[1], text.data(), text.size()) != static_cast<ssize_t>(text.size())) std::_Exit(2);
  close(ends[1]);
  dup2(ends[0], STDIN_FILENO);
  return read_standard_input(bytes_max, std::atomic<bool>(stopped));
}

[[noreturn]] void read_all_limited_and_stopped() {
  const std::string text("a\0\xff\n", 4);
  const auto all = read_after(text, 4, false);
  if (!all.ok() || *all != text) std::_Exit(3);
  const auto limited = read_after(text, 3, false);
  if (limited.ok() || limited.error().kind != ErrorKind::usage) std::_Exit(4);
  const auto stopped = read_after(text, 4, true);
  if (stopped.ok() || stopped.error().kind != ErrorKind::interrupted) std::_Exit(5);
  std::_Exit(0);
}

TEST(StandardStreamsDeathTest, InputIsReadWholeUpToItsLimitUnlessStopped) {
  EXPECT_EXIT(read_all_limited_and_stopped(), ::testing::ExitedWithCode(0), "");
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

[[noreturn]] void write_beyond_largest_file() {
  guard_standard_streams();
  const rlimit none{0, 0};
  std::FILE* file = std::tmpfile();
  if (file == nullptr || setrlimit(RLIMIT_FSIZE, &none) != 0) std::_Exit(2);
  std::_Exit(write(fileno(file), "x", 1) == -1 && errno == EFBIG ? 0 : 1);
}

TEST(StandardStreamsDeathTest, TooLargeAFileIsAnError) {
  EXPECT_EXIT(write_beyond_largest_file(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace sluice::os
