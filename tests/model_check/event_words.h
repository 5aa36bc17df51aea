// base/event_count.h as single steps, for models. Sleeping is a bit for each thread; that comparing
// the count and falling asleep are one step is what std::atomic::wait promises.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace sluice::model_check {

struct EventWords {
  uint8_t count = 0;
  uint8_t sleepers = 0;  ///< bit = thread

  void announce() { ++count; }

  /// How many different threads might be the one that is roused; 1 where nobody sleeps.
  size_t rouse_choice_count() const {
    return sleepers == 0 ? 1 : static_cast<size_t>(std::popcount(sleepers));
  }
  /// Rouses the `choice`-th of the sleepers; the system may pick any.
  void rouse(size_t choice) {
    unsigned rest = sleepers;
    for (size_t i = 0; i < choice; ++i) rest &= rest - 1;
    sleepers = static_cast<uint8_t>(sleepers & ~(rest & (0u - rest)));
  }
  void rouse_all() { sleepers = 0; }

  /// False where the count has moved on: the thread does not sleep.
  bool try_sleep(size_t thread, uint8_t ticket) {
    if (count != ticket) return false;
    sleepers = static_cast<uint8_t>(sleepers | 1u << thread);
    return true;
  }
  bool is_asleep(size_t thread) const { return (sleepers >> thread & 1) != 0; }
};

}  // namespace sluice::model_check
