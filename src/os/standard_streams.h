// The standard streams, kept from surprising a program. Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"

namespace sluice::os {

/// For the start of main, before any file is opened.
/// A stream that the parent closed gets its descriptor back, one that refuses to be used, so that
/// no model or output file takes its number and swallows what is printed. And writing to a pipe
/// that nobody reads any more, or beyond the largest file allowed, becomes an error (EPIPE, EFBIG)
/// instead of a signal that kills.
void guard_standard_streams();

/// All of standard input as it is, at most `bytes_max`; more is a usage error. A signal that sets
/// `stop` (os/interrupt.h) ends the waiting.
Result<std::string> read_standard_input(uint64_t bytes_max, const std::atomic<bool>& stop);

/// The next line of standard input, without its end; nothing at the end of the input. `pending`
/// keeps what was read beyond it: empty at first, the caller's to hand in again. The rest as above.
Result<std::optional<std::string>> read_standard_input_line(std::string& pending,
                                                            uint64_t bytes_max,
                                                            const std::atomic<bool>& stop);

bool standard_input_is_terminal();
bool standard_output_is_terminal();

}  // namespace sluice::os
