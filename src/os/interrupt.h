// Ctrl-C as a flag: the first SIGINT or SIGTERM asks the engine to stop at the next layer or token,
// the second ends the process at once.
#pragma once

#include <atomic>

namespace sluice::os {

/// Installs the handlers and returns the flag that the first signal sets. Calling it again gives
/// the same flag.
const std::atomic<bool>& interrupt_flag();

/// Lowers the flag, for a program that goes on after a Ctrl-C. False, and the flag stays, after a
/// SIGTERM: that asks for the end.
bool forgive_interrupt();

}  // namespace sluice::os
