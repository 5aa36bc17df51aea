#include "engine/console.h"

#include "os/interrupt.h"
#include "os/standard_streams.h"

namespace sluice {

Result<std::optional<std::string>> read_line(std::string& pending) {
  constexpr uint64_t kBytesMax = uint64_t{64} << 20;
  return os::read_standard_input_line(pending, kBytesMax, os::interrupt_flag());
}

bool go_on_after_interrupt() {
  return os::forgive_interrupt();
}

bool input_is_terminal() {
  return os::standard_input_is_terminal();
}

bool output_is_terminal() {
  return os::standard_output_is_terminal();
}

}  // namespace sluice
