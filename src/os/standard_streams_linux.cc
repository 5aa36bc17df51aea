#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <initializer_list>

#include "os/standard_streams.h"

namespace sluice::os {

void guard_standard_streams() {
  signal(SIGPIPE, SIG_IGN);
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) != -1) continue;
    // The lowest free number is this stream's, as those below are open by now. The wrong way round
    // on purpose: reading from stdin and writing to the others must fail.
    const int mode = stream == STDIN_FILENO ? O_WRONLY : O_RDONLY;
    if (open("/dev/null", mode) == -1) return;
  }
}

}  // namespace sluice::os
