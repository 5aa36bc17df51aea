#include "engine/working_memory.h"

namespace sluice {

void WorkingMemory::make_room(size_t token_count) {
  if (token_count == 1) {
    if (forward_.reserved_token_count() == 1) return;
    forward_.reserve(1);
    store_.take_back(free_bytes());
    return;
  }
  if (token_count <= forward_.reserved_token_count()) return;
  const uint64_t more = forward_.step_bytes(token_count) - forward_.reserved_bytes();
  if (more > free_bytes()) store_.give_back(more - free_bytes());
  forward_.reserve(token_count);
}

uint64_t WorkingMemory::free_bytes() const {
  const uint64_t used = ledger_.total_bytes();
  return used < budget_bytes_ ? budget_bytes_ - used : 0;
}

}  // namespace sluice
