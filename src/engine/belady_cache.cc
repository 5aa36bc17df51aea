#include "engine/belady_cache.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace sluice {

BeladyCache::BeladyCache(const ReplayPool& pool, const RoutingHistory& history)
    : pool_(pool),
      first_expert_(1, 0),
      next_turn_(history.lookup_count()),
      rooms_(pool.kind == PoolKind::ring ? 1 : pool.expert_counts.size()) {
  for (const uint32_t count : pool.expert_counts)
    first_expert_.push_back(first_expert_.back() + count);
  const uint32_t total = first_expert_.back();
  needs_.resize(total);
  is_here_.resize(total);
  used_in_.resize(total);
  std::vector<uint64_t> next_of(total, ~uint64_t{0});
  uint64_t lookup = history.lookup_count();
  for (size_t i = history.turn_count(); i-- > 0;) {
    const RoutingTurn turn = history.turn(i);
    for (size_t j = turn.experts.size(); j-- > 0;)
      next_turn_[--lookup] = std::exchange(next_of[first_expert_[turn.layer] + turn.experts[j]], i);
  }
}

void BeladyCache::play(const RoutingTurn& turn, std::span<uint8_t> hits) {
  ++turn_;
  Room& room = rooms_[pool_.kind == PoolKind::ring ? 0 : turn.layer];
  missing_.clear();
  for (size_t i = 0; i < turn.experts.size(); ++i) {
    const uint32_t expert = first_expert_[turn.layer] + turn.experts[i];
    needs_[expert] = {next_turn_[lookup_], lookup_};
    ++lookup_;
    used_in_[expert] = turn_;
    hits[i] = is_here_[expert];
    if (hits[i] != 0)
      push(room, expert);
    else
      missing_.push_back(expert);
  }
  const uint32_t slot_count = pool_.slot_count(turn.layer);
  const bool waves = turn.experts.size() > slot_count;
  for (const uint32_t expert : missing_) {
    is_here_[expert] = 1;
    push(room, expert);
    if (room.here_count == slot_count)
      evict(room, waves);
    else
      ++room.here_count;
  }
}

void BeladyCache::push(Room& room, uint32_t expert) {
  room.heap.push_back({needs_[expert], expert});
  std::push_heap(room.heap.begin(), room.heap.end());
  if (room.heap.size() < 4 * size_t{room.here_count} + 64) return;
  std::erase_if(room.heap, [&](const Entry& entry) { return !is_current(entry); });
  std::make_heap(room.heap.begin(), room.heap.end());
}

BeladyCache::Entry BeladyCache::pop(Room& room) {
  std::pop_heap(room.heap.begin(), room.heap.end());
  const Entry entry = room.heap.back();
  room.heap.pop_back();
  return entry;
}

/// What this turn asks for stays, unless it is more than the pool holds.
void BeladyCache::evict(Room& room, bool waves) {
  kept_.clear();
  while (true) {
    CHECK(!room.heap.empty());
    const Entry entry = pop(room);
    if (!is_current(entry)) continue;
    if (waves || used_in_[entry.expert] != turn_) {
      is_here_[entry.expert] = 0;
      break;
    }
    kept_.push_back(entry);
  }
  for (const Entry& entry : kept_) {
    room.heap.push_back(entry);
    std::push_heap(room.heap.begin(), room.heap.end());
  }
}

}  // namespace sluice
