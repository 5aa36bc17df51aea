// Who has the memory while the engine runs. The expert cache has all that the budget leaves, and it
// is also the one thing that can shrink without changing a result, so the others borrow from it:
//
//   a prompt   takes its working memory from the cache (empty slots first, then the least useful
//              experts); the first decoded token gives it back,
//   the system takes what it runs out of (engine/cache_balance), and the cache has it back slowly.
//
// The ledger stays within the budget throughout. Called between steps, by whoever owns the store.
#pragma once

#include <cstdint>

#include "base/ledger.h"
#include "base/log.h"
#include "engine/memory_watch.h"
#include "experts/expert_store.h"
#include "forward/forward_pass.h"

namespace sluice {

class WorkingMemory {
 public:
  struct Options {
    uint64_t budget_bytes = 0;    ///< of the process
    uint64_t overhead_bytes = 0;  ///< of it: what the ledger does not know
    BalanceLimits limits = {};
  };
  /// All of these must outlive it.
  WorkingMemory(ExpertStore& store, ForwardPass& forward, const Ledger& ledger, const Log& log,
                const Options& options)
      : store_(store),
        forward_(forward),
        ledger_(ledger),
        log_(log),
        options_(options),
        balance_(options.limits) {}

  /// Before a step of so many tokens. REQUIRES: no leases.
  void make_room(size_t token_count);

 private:
  uint64_t free_bytes() const;
  void react(const MemoryWatch::Sample& sample, WorkKind work);

  ExpertStore& store_;
  ForwardPass& forward_;
  const Ledger& ledger_;
  const Log& log_;
  const Options options_;
  CacheBalance balance_;
  MemoryWatch watch_;
  uint64_t lent_bytes_ = 0;  ///< to the prompt
};

}  // namespace sluice
