// What the parts of an engine have counted, as reports want it.
#include "engine/engine_impl.h"

namespace sluice {
namespace {

LookaheadCounters lookahead_counters(const LookaheadCounts& seen, const GuessStats& read) {
  return {.picks = seen.pick_count,
          .foreseen = seen.foreseen_count,
          .misses = seen.miss_count,
          .misses_foreseen = seen.miss_foreseen_count,
          .started = read.started_count,
          .useful = read.useful_count,
          .wasted = read.wasted_count,
          .cancelled = read.cancelled_count};
}

}  // namespace

MoeCounters Engine::counters() const {
  const IdleFill::Look look = impl_->idle_fill->look();
  const ExpertStats stats = impl_->store->stats();
  MoeCounters counters{.lookups = stats.lookup_count,
                       .hits = stats.hit_count,
                       .joins = stats.join_count,
                       .misses = stats.miss_count,
                       .evictions = stats.eviction_count,
                       .distinct = stats.distinct_count,
                       .reads = stats.miss_count + stats.idle_fill_count,
                       .demand_reads = stats.demand_read_count,
                       .demand_bytes = stats.demand_bytes,
                       .prefetch_reads = stats.prefetch_read_count,
                       .prefetch_bytes = stats.prefetch_bytes,
                       .prefetch_useful_bytes = stats.prefetch_useful_bytes,
                       .promoted = stats.prefetch_promoted_count,
                       .idle_fills = stats.idle_fill_count,
                       .stall_s = static_cast<double>(stats.stall_ns) * 1e-9,
                       .lookahead = {}};
  const GuessStats guesses = stats.all_guesses();
  counters.reads += guesses.started_count - guesses.cancelled_count;
  counters.lookahead.push_back(lookahead_counters({}, stats.guesses[0]));
  for (uint32_t distance = 1; distance <= kDistanceMax; ++distance)
    counters.lookahead.push_back(
        lookahead_counters(impl_->lookahead->stats().at(distance), stats.guesses[distance]));
  return counters;
}

LookaheadCounters LookaheadCounters::since(const LookaheadCounters& before) const {
  return {.picks = picks - before.picks,
          .foreseen = foreseen - before.foreseen,
          .misses = misses - before.misses,
          .misses_foreseen = misses_foreseen - before.misses_foreseen,
          .started = started - before.started,
          .useful = useful - before.useful,
          .wasted = wasted - before.wasted,
          .cancelled = cancelled - before.cancelled};
}

LookaheadCounters MoeCounters::all_guesses() const {
  LookaheadCounters sum;
  for (const LookaheadCounters& of_distance : lookahead) {
    sum.started += of_distance.started;
    sum.useful += of_distance.useful;
    sum.wasted += of_distance.wasted;
    sum.cancelled += of_distance.cancelled;
  }
  return sum;
}

MoeCounters MoeCounters::since(const MoeCounters& before) const {
  MoeCounters counters{
      .lookups = lookups - before.lookups,
      .hits = hits - before.hits,
      .joins = joins - before.joins,
      .misses = misses - before.misses,
      .evictions = evictions - before.evictions,
      .distinct = distinct - before.distinct,
      .reads = reads - before.reads,
      .demand_reads = demand_reads - before.demand_reads,
      .demand_bytes = demand_bytes - before.demand_bytes,
      .prefetch_reads = prefetch_reads - before.prefetch_reads,
      .prefetch_bytes = prefetch_bytes - before.prefetch_bytes,
      .prefetch_useful_bytes = prefetch_useful_bytes - before.prefetch_useful_bytes,
      .promoted = promoted - before.promoted,
      .idle_fills = idle_fills - before.idle_fills,
      .stall_s = stall_s - before.stall_s,
      .lookahead = {}};
  for (size_t i = 0; i < lookahead.size(); ++i)
    counters.lookahead.push_back(lookahead[i].since(before.lookahead[i]));
  return counters;
}

}  // namespace sluice
