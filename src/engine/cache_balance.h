// How much the expert cache gives back, or takes again, while the engine runs. The plan at the
// start (memory_plan.h) divides the memory there is; then other programs come and go, a prompt
// needs room, and the kernel may press. The cache is the one thing that can shrink and grow without
// changing a result, so it carries all of that.
//
//   give back   at once, as much as is missing:
//               - beyond the stated cap (--ram): to the byte, always;
//               - when less than 3/4 of the headroom is left free: up to the whole headroom;
//               - when a control group's margin is half used up: up to the whole margin;
//               - when the kernel reports pressure and less than twice the headroom is free: a
//                 sixteenth of the cache, once a second. With more there is no shortage: tasks wait
//                 then for the file cache to make room, as when our own slots fill.
//   take again  what a prompt had been lent: when it is over, as far as memory allows.
//               All else slowly: a sixteenth of the planned size a second, after 10 seconds without
//               giving or pressure, and only with 1.5 times the headroom free.
//
// What is booked and not touched yet counts as taken everywhere. The gap between the two thresholds
// is what keeps it from swinging. Never below the floor, the experts of one token: better slow than
// stuck. A decision on paper: numbers in, numbers out; the caller moves the slots. Call it between
// steps. Pure but for what it remembers; one thread at a time.
#pragma once

#include <cstdint>
#include <string>

#include "os/memory.h"

namespace sluice {

struct BalanceLimits {
  uint64_t cap_bytes = 0;       ///< of the process, stated by the user; 0: none
  uint64_t headroom_bytes = 0;  ///< to leave free in the machine
  uint64_t floor_bytes = 0;     ///< slots for the experts of one token
  uint64_t planned_bytes = 0;   ///< the cache's size by the plan, its most
};

enum class WorkKind : uint8_t { idle, prompt, decode };
enum class PressureSignal : uint8_t { none, pressed };

struct BalanceInput {
  uint64_t now_ns = 0;
  os::MemoryState memory;
  uint64_t resident_bytes = 0;  ///< of the process
  uint64_t ledger_bytes = 0;    ///< all that is booked, touched or not, the cache's bytes among it
  uint64_t overhead_bytes = 0;  ///< of the process, not in the ledger
  uint64_t cache_bytes = 0;     ///< the slots it may use now
  PressureSignal pressure = PressureSignal::none;
  WorkKind work = WorkKind::idle;  ///< what comes next
};

enum class BalanceReason : uint8_t {
  balanced,
  cap,            ///< the stated cap would be exceeded
  headroom,       ///< the machine is running out of memory
  control_group,  ///< its control group is
  pressure,       ///< the kernel says so
  prompt_over,    ///< a prompt has returned what it was lent
  calm,           ///< there has been room for a while
};

struct BalanceStep {
  uint64_t give_bytes = 0;
  uint64_t take_bytes = 0;  ///< one of the two is 0
  BalanceReason reason = BalanceReason::balanced;

  /// A line for the user; empty when nothing is to be done.
  std::string text() const;
};

class CacheBalance {
 public:
  explicit CacheBalance(const BalanceLimits& limits);

  /// The caller is taken to follow, as far as whole slots allow.
  BalanceStep decide(const BalanceInput& input);

 private:
  struct Spare;  ///< what is free beyond each limit, negative where it is missing

  Spare measure(const BalanceInput& input) const;
  BalanceStep give(const BalanceInput& input, const Spare& spare);
  BalanceStep take(const BalanceInput& input, const Spare& spare);

  BalanceLimits limits_;
  uint64_t lent_bytes_ = 0;     ///< to a prompt
  uint64_t calm_since_ns_ = 0;  ///< nothing was given and nobody pressed
  uint64_t pressed_ns_ = 0;     ///< when pressure last made us give
  uint64_t taken_ns_ = 0;       ///< when something was last taken
};

}  // namespace sluice
