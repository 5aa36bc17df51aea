#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <initializer_list>
#include <system_error>

#include "os/standard_streams.h"

namespace sluice::os {

void guard_standard_streams() {
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) != -1) continue;
    // The lowest free number is this stream's, as those below are open by now. The wrong way round
    // on purpose: reading from stdin and writing to the others must fail.
    const int mode = stream == STDIN_FILENO ? O_WRONLY : O_RDONLY;
    if (open("/dev/null", mode) == -1) return;
  }
}

namespace {

/// Waits for some more bytes. False: the input is at its end.
Result<bool> read_more(std::string& text, uint64_t bytes_max, const std::atomic<bool>& stop) {
  char piece[1 << 16];
  while (!stop) {
    const ssize_t count = read(STDIN_FILENO, piece, sizeof(piece));
    if (count == 0) return false;
    if (count < 0 && errno == EINTR) continue;
    if (count < 0)
      return make_error(ErrorKind::io, "standard input: cannot read: {}",
                        std::generic_category().message(errno));
    text.append(piece, static_cast<size_t>(count));
    if (text.size() > bytes_max)
      return make_error(ErrorKind::usage, "standard input: more than {} bytes", bytes_max);
    return true;
  }
  return make_error(ErrorKind::interrupted, "interrupted");
}

}  // namespace

Result<std::string> read_standard_input(uint64_t bytes_max, const std::atomic<bool>& stop) {
  std::string text;
  for (;;) {
    const auto more = read_more(text, bytes_max, stop);
    if (!more) return more.error();
    if (!*more) return text;
  }
}

Result<std::optional<std::string>> read_standard_input_line(std::string& pending,
                                                            uint64_t bytes_max,
                                                            const std::atomic<bool>& stop) {
  size_t searched = 0;
  size_t end = 0;
  while ((end = pending.find('\n', searched)) == pending.npos) {
    searched = pending.size();
    const auto more = read_more(pending, bytes_max, stop);
    if (!more) return more.error();
    if (*more) continue;
    if (pending.empty()) return std::optional<std::string>();
    end = pending.size();
    break;
  }
  std::string line = pending.substr(0, end);
  pending.erase(0, end + 1);
  if (line.ends_with('\r')) line.pop_back();
  return std::optional(std::move(line));
}

bool standard_input_is_terminal() {
  return isatty(STDIN_FILENO) == 1;
}

bool standard_output_is_terminal() {
  return isatty(STDOUT_FILENO) == 1;
}

}  // namespace sluice::os
