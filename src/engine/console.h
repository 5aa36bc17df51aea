// What a conversation at a terminal needs beyond engine.h: lines as they are typed, and a Ctrl-C
// that ends an answer but not the program. One thread.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"

namespace sluice {

/// The next line of standard input, nothing at its end. Ctrl-C ends the waiting. `pending` keeps
/// what was read beyond the line: empty at first.
Result<std::optional<std::string>> read_line(std::string& pending);

/// After a step was interrupted: the engine may go on. False: the process was asked to end.
bool go_on_after_interrupt();

bool input_is_terminal();
bool output_is_terminal();

}  // namespace sluice
