#include <signal.h>
#include <unistd.h>

#include "os/interrupt.h"

namespace sluice::os {
namespace {

constexpr int kInterruptedExitCode = 130;

// A signal handler can reach only what is global; these flags are the globals of the engine.
std::atomic<bool> interrupted{false};
std::atomic<bool> terminated{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may not take a lock");

void on_signal(int signal) {
  if (signal == SIGTERM) terminated = true;
  if (interrupted.exchange(true)) _exit(kInterruptedExitCode);
}

bool install_handlers() {
  struct sigaction action = {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  // No SA_RESTART: a wait for the user's next line must end, too. Reads of files begin again.
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  return true;
}

}  // namespace

const std::atomic<bool>& interrupt_flag() {
  static const bool installed = install_handlers();
  static_cast<void>(installed);
  return interrupted;
}

bool forgive_interrupt() {
  if (terminated) return false;
  interrupted = false;
  return true;
}

}  // namespace sluice::os
