// What sluice trace does: replays a recording of routing against expert caches of many sizes and
// policies, without a model or a drive, and says what a recording holds. The misses of perfect
// hindsight (Belady) stand beside those of each policy, since they are what is possible. Any
// thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/replay_cache.h"

namespace sluice {

struct ReplayRequest {
  std::string path;
  std::optional<RawTraceLayout> raw;  ///< bare ids instead of a trace
  PoolKind pool = PoolKind::layer;
  std::vector<uint32_t> slot_counts;  ///< for each layer; empty: some shares of the experts
  std::vector<std::string> policies;  ///< empty: all
  uint32_t half_life_tokens = EngineOptions{}.half_life_tokens;  ///< of decay
};

/// A recording in numbers.
struct TraceFacts {
  std::string file;
  uint64_t file_bytes = 0;
  TraceHeader header;
  bool cut_short = false;  ///< it ends within a step
  uint64_t decode_tokens = 0;
  uint64_t prompt_tokens = 0;
  uint64_t prompt_batches = 0;
  uint64_t lookups = 0;  ///< distinct experts of each step and layer
  uint64_t score_records = 0;

  /// Of the experts that a prediction at this distance was made for, how many it named.
  struct Recall {
    uint32_t distance = 0;
    uint64_t lookups = 0;
    uint64_t foreseen = 0;

    double share() const { return lookups == 0 ? 0 : 1.0 * foreseen / lookups; }
  };
  std::vector<Recall> recalls;  ///< only distances that were recorded
};

/// One policy with one number of slots.
struct ReplayRow {
  std::string policy;
  uint32_t slots_per_layer = 0;
  uint64_t lookups = 0;
  uint64_t misses = 0;
  uint64_t decode_lookups = 0;
  uint64_t decode_misses = 0;
  std::vector<uint64_t> foreseen_misses;  ///< beside TraceFacts::recalls

  double hit_rate() const { return lookups == 0 ? 0 : 1.0 - 1.0 * misses / lookups; }
};

struct ReplayReport {
  TraceFacts trace;
  PoolKind pool = PoolKind::layer;
  uint32_t half_life_tokens = 0;
  std::vector<ReplayRow> rows;  ///< by slots, then in the order of replay_policy_names()
  double seconds = 0;           ///< of replaying, without reading the file

  /// The row of a policy with so many slots; null where it was not asked for.
  const ReplayRow* find(std::string_view policy, uint32_t slots) const;
};

Result<TraceFacts> describe_trace(const std::string& path,
                                  const std::optional<RawTraceLayout>& raw);
Result<ReplayReport> replay_trace(const ReplayRequest& request);

}  // namespace sluice
