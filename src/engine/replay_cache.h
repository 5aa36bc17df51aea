// Caches to replay a recording against; no bytes, no reads. Those of a run's policies are the
// bookkeeping of a run itself (experts/expert_cache over slots without memory), asked in the order
// in which a layer asks (forward/moe_layer):
//
//   - What is here is leased first, then the others get slots one by one, as if their reads ended
//     at once. So nothing that a turn asks for leaves in that turn.
//   - Where a turn asks for more than there are slots, finished experts make room for the others,
//     the first leased first.
//   - While a prompt goes on the least recently used leaves, from its last batch on the policy
//     decides.
//
// What a run adds is left out: prefetches, idle fills, and slots lent to long prompts. Beside them
// stands perfect hindsight (engine/belady_cache). One thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "engine/options.h"
#include "engine/routing_history.h"

namespace sluice {

/// The slots of a cache under test.
struct ReplayPool {
  PoolKind kind = PoolKind::layer;
  uint32_t slots_per_layer = 0;         ///< a ring has as many for each layer that has experts
  std::vector<uint32_t> expert_counts;  ///< [layer]
  uint32_t used_count = 0;
  uint32_t half_life_tokens = EngineOptions{}.half_life_tokens;  ///< of decay

  uint32_t streamed_layer_count() const;
  /// Slots that the layer's experts may lie in.
  uint32_t slot_count(uint32_t layer) const;
};

class ReplayCache {
 public:
  virtual ~ReplayCache() = default;
  /// Plays a turn. `hits` lies beside the turn's experts: 1 where it was here already.
  virtual void play(const RoutingTurn& turn, std::span<uint8_t> hits) = 0;
};

/// The names that make_replay_cache() knows, in the order of reports: the policies of a run, and
/// "belady", which knows the future.
std::span<const std::string_view> replay_policy_names();

/// REQUIRES: one of replay_policy_names().
std::unique_ptr<ReplayCache> make_replay_cache(std::string_view policy, const ReplayPool& pool,
                                               const RoutingHistory& history);

}  // namespace sluice
