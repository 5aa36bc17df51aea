// Looks at the system's memory twice a second, on a thread of its own: asking takes a tenth of a
// millisecond and allocates, which no token should wait for. Whoever runs the steps takes the
// newest sample when it passes by. One taker; any thread.
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include "engine/cache_balance.h"
#include "os/memory_pressure.h"

namespace sluice {

class MemoryWatch {
 public:
  struct Sample {
    uint64_t now_ns = 0;
    os::MemoryState memory;
    uint64_t resident_bytes = 0;  ///< of this process
    PressureSignal pressure = PressureSignal::none;
  };

  /// Where no thread is to be had there are no samples.
  MemoryWatch();
  ~MemoryWatch();
  MemoryWatch(const MemoryWatch&) = delete;
  MemoryWatch& operator=(const MemoryWatch&) = delete;

  /// The newest sample, once; nothing when there is none or it is just being written. Never waits,
  /// never allocates.
  std::optional<Sample> take();

 private:
  void work();

  os::MemoryPressure pressure_;  ///< the thread's
  std::mutex mutex_;             ///< guards what follows
  std::condition_variable wake_;
  bool stop_ = false;
  std::optional<Sample> newest_;
  std::thread thread_;
};

}  // namespace sluice
