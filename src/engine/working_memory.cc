#include "engine/working_memory.h"

#include <algorithm>

namespace sluice {

void WorkingMemory::make_room(size_t token_count) {
  if (const auto sample = watch_.take())
    react(*sample, token_count == 1 ? WorkKind::decode : WorkKind::prompt);
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

void WorkingMemory::react(const MemoryWatch::Sample& sample, WorkKind work) {
  const BalanceStep step = balance_.decide({.now_ns = sample.now_ns,
                                            .memory = sample.memory,
                                            .resident_bytes = sample.resident_bytes,
                                            .ledger_bytes = ledger_.total_bytes(),
                                            .overhead_bytes = options_.overhead_bytes,
                                            .cache_bytes = ledger_.bytes(MemoryUse::cache),
                                            .pressure = sample.pressure,
                                            .work = work});
  if (step.give_bytes > 0) store_.give_back(step.give_bytes);
  if (step.take_bytes > 0) store_.take_back(std::min(step.take_bytes, free_bytes()));
  if (const std::string text = step.text(); !text.empty()) log_.info("{}", text);
}

}  // namespace sluice
