#include "engine/working_memory.h"

#include <algorithm>

#include "os/clock.h"

namespace sluice {
namespace {

/// Asking the system takes a tenth of a millisecond.
constexpr uint64_t kWatchInterval_ns = 500'000'000;

}  // namespace

void WorkingMemory::make_room(size_t token_count) {
  watch_system(token_count);
  if (token_count == 1 && forward_.reserved_token_count() > 1) {
    forward_.reserve(1);
    store_.take_back(std::min(lent_bytes_, free_bytes()));
    lent_bytes_ = 0;
  } else if (token_count > forward_.reserved_token_count()) {
    const uint64_t more = forward_.step_bytes(token_count) - forward_.reserved_bytes();
    if (more > free_bytes()) lent_bytes_ += store_.give_back(more - free_bytes());
    forward_.reserve(token_count);
  }
}

uint64_t WorkingMemory::free_bytes() const {
  const uint64_t used = ledger_.total_bytes() + options_.overhead_bytes;
  return used < options_.budget_bytes ? options_.budget_bytes - used : 0;
}

void WorkingMemory::watch_system(size_t token_count) {
  const uint64_t now = os::now_ns();
  if (now - watched_ns_ < kWatchInterval_ns) return;
  watched_ns_ = now;
  const BalanceStep step = balance_.decide(
      {.now_ns = now,
       .memory = os::memory_state(),
       .resident_bytes = os::resident_bytes(),
       .ledger_bytes = ledger_.total_bytes(),
       .overhead_bytes = options_.overhead_bytes,
       .cache_bytes = ledger_.bytes(MemoryUse::cache),
       .pressure = pressure_.is_pressed(now) ? PressureSignal::pressed : PressureSignal::none,
       .work = token_count == 1 ? WorkKind::decode : WorkKind::prompt});
  if (step.give_bytes > 0) store_.give_back(step.give_bytes);
  if (step.take_bytes > 0) store_.take_back(std::min(step.take_bytes, free_bytes()));
  if (const std::string text = step.text(); !text.empty()) log_.info("{}", text);
}

}  // namespace sluice
