#include "engine/memory_watch.h"

#include <chrono>
#include <system_error>
#include <utility>

#include "os/clock.h"

namespace sluice {
namespace {

constexpr std::chrono::milliseconds kInterval{500};

}  // namespace

MemoryWatch::MemoryWatch() {
  try {
    thread_ = std::thread([this] { work(); });
  } catch (const std::system_error&) {
    // The plan made at the start has to do.
  }
}

MemoryWatch::~MemoryWatch() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

std::optional<MemoryWatch::Sample> MemoryWatch::take() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return {};
  return std::exchange(newest_, std::nullopt);
}

void MemoryWatch::work() {
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, kInterval, [this] { return stop_; })) {
    lock.unlock();
    const uint64_t now = os::now_ns();
    const bool pressed = pressure_.is_pressed(now);
    const Sample sample{.now_ns = now,
                        .memory = os::memory_state(),
                        .resident_bytes = os::resident_bytes(),
                        .pressure = pressed ? PressureSignal::pressed : PressureSignal::none};
    lock.lock();
    newest_ = sample;
  }
}

}  // namespace sluice
