#include "engine/replay_cache.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "base/check.h"
#include "engine/belady_cache.h"
#include "experts/contest_policy.h"
#include "experts/expert_cache.h"
#include "forward/grouping.h"

namespace sluice {

uint32_t ReplayPool::streamed_layer_count() const {
  return static_cast<uint32_t>(
      std::ranges::count_if(expert_counts, [](uint32_t count) { return count > 0; }));
}

uint32_t ReplayPool::slot_count(uint32_t layer) const {
  if (kind == PoolKind::ring) return slots_per_layer * streamed_layer_count();
  return std::min(slots_per_layer, expert_counts[layer]);
}

namespace {

/// Experts of one size and one part each; no slot has memory.
constexpr uint64_t kExpertBytes = 1;
constexpr PartMask kOnlyPart = 1;

SlotPlan plan_slots(const ReplayPool& pool) {
  std::vector<uint64_t> bytes;
  std::vector<uint32_t> counts;
  for (uint32_t layer = 0; layer < pool.expert_counts.size(); ++layer) {
    bytes.push_back(pool.expert_counts[layer] == 0 ? 0 : kExpertBytes);
    counts.push_back(pool.slot_count(layer));
  }
  if (pool.kind == PoolKind::layer) return plan_layer_pool(bytes, counts);
  return plan_ring_pool(bytes, pool.slots_per_layer * pool.streamed_layer_count(), kExpertBytes);
}

std::unique_ptr<EvictionPolicy> make_policy(std::string_view name, const ReplayPool& pool,
                                            const SlotPlan& plan) {
  const uint32_t experts =
      std::accumulate(pool.expert_counts.begin(), pool.expert_counts.end(), 0u);
  if (name == "lru") return std::make_unique<LruPolicy>(experts);
  if (name == "decay") return std::make_unique<DecayPolicy>(experts, pool.half_life_tokens);
  CHECK(name == "contest");
  return std::make_unique<ContestPolicy>(plan_contest(plan, pool.expert_counts), pool.used_count);
}

uint32_t token_count_max(const RoutingHistory& history) {
  uint32_t most = 1;
  for (size_t i = 0; i < history.turn_count(); ++i)
    most = std::max(most, history.turn(i).token_count);
  return most;
}

/// The expert cache of a run, driven as a run drives it.
class EngineCache final : public ReplayCache {
 public:
  EngineCache(std::string_view policy, const ReplayPool& pool, const RoutingHistory& history)
      : expert_counts_(pool.expert_counts),
        table_(plan_slots(pool)),
        cache_(table_, {.expert_counts = pool.expert_counts, .used_count = pool.used_count},
               make_policy(policy, pool, table_.plan())),
        grouping_(token_count_max(history), pool.used_count, history.header().expert_count_max()) {}

  void play(const RoutingTurn& turn, std::span<uint8_t> hits) override {
    if (turn.step >= next_step_) cache_.begin_tokens(turn.token_count);
    next_step_ = turn.step + 1;
    for (size_t i = 0; i < turn.experts.size(); ++i)
      hits[i] = cache_.find({turn.layer, turn.experts[i]}) != kNoSlot;

    const Ranking ranking = turn.tokens_behind > 0 ? Ranking::recency : Ranking::worth;
    chosen_.assign(turn.chosen.begin(), turn.chosen.end());
    grouping_.group(chosen_, expert_counts_[turn.layer], turn.tokens_behind);
    cache_.begin_layer(turn.layer, ranking, chosen_);
    lease_residents(turn.layer);
    if (ranking == Ranking::worth)
      std::ranges::stable_sort(absent_, {}, [](const ExpertGroup& group) { return group.recency; });
    for (const ExpertGroup& group : absent_) read(turn.layer, group);
    while (finished_count_ < leased_.size()) finish_first();
    leased_.clear();
    finished_count_ = 0;
  }

 private:
  void lease_residents(uint32_t layer) {
    absent_.clear();
    for (const ExpertGroup& group : grouping_.groups()) {
      const SlotIndex slot = cache_.find({layer, group.expert});
      if (slot == kNoSlot)
        absent_.push_back(group);
      else
        lease(slot, group);
    }
  }

  void read(uint32_t layer, const ExpertGroup& group) {
    SlotIndex slot = kNoSlot;
    while ((slot = cache_.bind({layer, group.expert}, SlotUse::demand)) == kNoSlot) finish_first();
    table_.state(slot).begin_read();
    table_.state(slot).part_ready(kOnlyPart, kOnlyPart);
    lease(slot, group);
  }

  void lease(SlotIndex slot, const ExpertGroup& group) {
    table_.state(slot).add_lease();
    cache_.use(slot, group.recency);
    leased_.push_back(slot);
  }
  void finish_first() { table_.state(leased_[finished_count_++]).drop_lease(); }

  const std::vector<uint32_t> expert_counts_;  ///< [layer]
  SlotTable table_;
  ExpertCache cache_;
  Grouping grouping_;
  std::vector<int32_t> chosen_;
  std::vector<ExpertGroup> absent_;
  std::vector<SlotIndex> leased_;  ///< in this turn
  size_t finished_count_ = 0;      ///< of these, from the front
  uint64_t next_step_ = 0;
};

constexpr std::array<std::string_view, 4> kPolicyNames = {"lru", "decay", "contest", "belady"};

}  // namespace

std::span<const std::string_view> replay_policy_names() {
  return kPolicyNames;
}

std::unique_ptr<ReplayCache> make_replay_cache(std::string_view policy, const ReplayPool& pool,
                                               const RoutingHistory& history) {
  if (policy == "belady") return std::make_unique<BeladyCache>(pool, history);
  return std::make_unique<EngineCache>(policy, pool, history);
}

}  // namespace sluice
