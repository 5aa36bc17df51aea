// What the parts of an engine have counted, as reports want it.
#include <array>

#include "engine/engine_impl.h"

namespace sluice {
namespace {

// Every count by name, so that whatever treats all of them alike has them from here. A count that
// is added to a struct and not to its list does not compile.
constexpr std::array kLookaheadCounts = {
    &LookaheadCounters::picks,           &LookaheadCounters::foreseen, &LookaheadCounters::misses,
    &LookaheadCounters::misses_foreseen, &LookaheadCounters::started,  &LookaheadCounters::useful,
    &LookaheadCounters::wasted,          &LookaheadCounters::cancelled};
static_assert(sizeof(LookaheadCounters) == sizeof(uint64_t) * kLookaheadCounts.size());

constexpr std::array kMoeCounts = {
    &MoeCounters::lookups,        &MoeCounters::hits,           &MoeCounters::joins,
    &MoeCounters::misses,         &MoeCounters::evictions,      &MoeCounters::distinct,
    &MoeCounters::reads,          &MoeCounters::demand_reads,   &MoeCounters::demand_bytes,
    &MoeCounters::prefetch_reads, &MoeCounters::prefetch_bytes, &MoeCounters::prefetch_useful_bytes,
    &MoeCounters::promoted,       &MoeCounters::idle_fills};
static_assert(sizeof(MoeCounters) == sizeof(uint64_t) * kMoeCounts.size() +
                                         sizeof(MoeCounters::stall_s) +
                                         sizeof(MoeCounters::lookahead));

static_assert(kDistanceMax <= kGuessDistanceMax, "guesses of each distance are counted apart");

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
  LookaheadCounters counters = *this;
  for (const auto count : kLookaheadCounts) counters.*count -= before.*count;
  return counters;
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
  MoeCounters counters = *this;
  for (const auto count : kMoeCounts) counters.*count -= before.*count;
  counters.stall_s -= before.stall_s;
  for (size_t i = 0; i < lookahead.size(); ++i)
    counters.lookahead[i] = lookahead[i].since(before.lookahead[i]);
  return counters;
}

}  // namespace sluice
