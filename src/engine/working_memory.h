// The working memory of a prompt, borrowed from the expert cache. Between prompts every byte of the
// budget holds experts; a prompt takes what it needs (empty slots first, then the least useful
// experts), and the first decoded token gives it back. The ledger stays within the budget
// throughout. One thread at a time.
#pragma once

#include <cstdint>

#include "base/ledger.h"
#include "experts/expert_store.h"
#include "forward/forward_pass.h"

namespace sluice {

class WorkingMemory {
 public:
  /// `budget_bytes` for all that the ledger knows. All of these must outlive it.
  WorkingMemory(ExpertStore& store, ForwardPass& forward, const Ledger& ledger,
                uint64_t budget_bytes)
      : store_(store), forward_(forward), ledger_(ledger), budget_bytes_(budget_bytes) {}

  /// Before a step of so many tokens. REQUIRES: no leases.
  void make_room(size_t token_count);

 private:
  uint64_t free_bytes() const;

  ExpertStore& store_;
  ForwardPass& forward_;
  const Ledger& ledger_;
  const uint64_t budget_bytes_;
};

}  // namespace sluice
