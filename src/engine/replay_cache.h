// Caches to replay a recording against: which experts are here, and who leaves; no bytes, no reads.
// One interface, so that the expert cache of a run and the plain simulations here are asked the
// same questions. All keep to the same rules:
//
//   - A turn's experts that are here are found first; then the others are read, one by one.
//   - What a turn asks for does not leave in that turn, unless it is more than the pool holds
//     (waves). Then those stay, of all that were here, which are worth most.
//
// One thread at a time.
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

/// The names that make_replay_cache() knows, in the order of reports: the rules of a run, and
/// "belady", which knows the future.
std::span<const std::string_view> replay_policy_names();

/// REQUIRES: one of replay_policy_names(). The history must outlive the cache.
std::unique_ptr<ReplayCache> make_replay_cache(std::string_view policy, const ReplayPool& pool,
                                               const RoutingHistory& history);

}  // namespace sluice
