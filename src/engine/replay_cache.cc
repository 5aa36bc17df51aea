#include "engine/replay_cache.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "base/check.h"
#include "experts/eviction_contest.h"

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

/// Where an expert stands in the order of leaving: the lowest leaves first.
struct LeaveKey {
  double worth = 0;
  uint64_t used_at = 0;  ///< a fresh number at each use

  friend auto operator<=>(const LeaveKey&, const LeaveKey&) = default;
};

/// Gives experts their keys. A key changes when the expert is used and only then, so that a heap
/// can keep the order.
class KeyRule {
 public:
  virtual ~KeyRule() = default;
  virtual void begin_turn(const RoutingTurn&) {}
  /// An expert (its number over all layers) is used; lookups are counted over the whole history.
  virtual LeaveKey on_use(uint32_t expert, uint64_t lookup) = 0;
};

class RecencyRule final : public KeyRule {
 public:
  LeaveKey on_use(uint32_t, uint64_t lookup) override { return {0, lookup}; }
};

/// Use counts that halve every 64 tokens. Kept as a level: the logarithm of the count, had it been
/// halved never and had new uses counted ever more instead. Its order is the same, it needs no
/// attention as time passes, and it stays small.
class DecayRule final : public KeyRule {
 public:
  explicit DecayRule(uint32_t expert_total)
      : level_(expert_total, -std::numeric_limits<double>::infinity()) {}

  void begin_turn(const RoutingTurn& turn) override {
    if (turn.step < next_step_) return;
    next_step_ = turn.step + 1;
    now_ += turn.token_count / kHalfLifeTokens;
  }
  LeaveKey on_use(uint32_t expert, uint64_t lookup) override {
    level_[expert] = now_ + std::log2(1 + std::exp2(level_[expert] - now_));
    return {level_[expert], lookup};
  }

 private:
  static constexpr double kHalfLifeTokens = 64;

  std::vector<double> level_;  ///< [expert]
  uint64_t next_step_ = 0;
  double now_ = 0;  ///< halvings so far
};

/// Perfect hindsight (Belady 1966): what is not needed for longest leaves. No rule misses less.
class HindsightRule final : public KeyRule {
 public:
  HindsightRule(const RoutingHistory& history, std::span<const uint32_t> first_expert,
                uint32_t expert_total)
      : next_turn_(history.lookup_count()) {
    std::vector<double> next_of(expert_total, std::numeric_limits<double>::infinity());
    uint64_t lookup = history.lookup_count();
    for (size_t i = history.turn_count(); i-- > 0;) {
      const RoutingTurn turn = history.turn(i);
      for (size_t j = turn.experts.size(); j-- > 0;)
        next_turn_[--lookup] = std::exchange(next_of[first_expert[turn.layer] + turn.experts[j]],
                                             static_cast<double>(i));
    }
  }
  LeaveKey on_use(uint32_t, uint64_t lookup) override { return {-next_turn_[lookup], lookup}; }

 private:
  std::vector<double> next_turn_;  ///< [lookup]: the turn in which its expert is used again
};

std::vector<uint32_t> number_experts(const ReplayPool& pool) {
  std::vector<uint32_t> first(1, 0);
  for (const uint32_t count : pool.expert_counts) first.push_back(first.back() + count);
  return first;
}

/// A cache whose policy is a KeyRule.
class KeyedCache final : public ReplayCache {
 public:
  KeyedCache(const ReplayPool& pool, std::unique_ptr<KeyRule> rule)
      : pool_(pool),
        rule_(std::move(rule)),
        first_expert_(number_experts(pool)),
        keys_(first_expert_.back()),
        is_here_(first_expert_.back(), 0),
        used_in_(first_expert_.back(), 0),
        rooms_(pool.kind == PoolKind::ring ? 1 : pool.expert_counts.size()) {}

  void play(const RoutingTurn& turn, std::span<uint8_t> hits) override {
    rule_->begin_turn(turn);
    ++turn_;
    Room& room = rooms_[pool_.kind == PoolKind::ring ? 0 : turn.layer];
    missing_.clear();
    for (size_t i = 0; i < turn.experts.size(); ++i) {
      const uint32_t expert = first_expert_[turn.layer] + turn.experts[i];
      keys_[expert] = rule_->on_use(expert, lookup_++);
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

 private:
  struct Entry {
    LeaveKey key;
    uint32_t expert;

    friend bool operator>(const Entry& a, const Entry& b) { return a.key > b.key; }
  };
  /// Experts that share slots: a layer's, or all. The heap holds an entry for each that is here,
  /// and outdated ones, which are dropped when they come up.
  struct Room {
    std::vector<Entry> heap;
    uint32_t here_count = 0;
  };

  bool is_current(const Entry& entry) const {
    return is_here_[entry.expert] != 0 && entry.key == keys_[entry.expert];
  }

  void push(Room& room, uint32_t expert) {
    room.heap.push_back({keys_[expert], expert});
    std::ranges::push_heap(room.heap, std::greater{});
    if (room.heap.size() < 4 * size_t{room.here_count} + 64) return;
    std::erase_if(room.heap, [&](const Entry& entry) { return !is_current(entry); });
    std::ranges::make_heap(room.heap, std::greater{});
  }

  Entry pop(Room& room) {
    std::ranges::pop_heap(room.heap, std::greater{});
    const Entry entry = room.heap.back();
    room.heap.pop_back();
    return entry;
  }

  void evict(Room& room, bool waves) {
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
      std::ranges::push_heap(room.heap, std::greater{});
    }
  }

  const ReplayPool pool_;
  const std::unique_ptr<KeyRule> rule_;
  const std::vector<uint32_t> first_expert_;  ///< [layer], and the total
  std::vector<LeaveKey> keys_;                ///< [expert]
  std::vector<uint8_t> is_here_;              ///< [expert]
  std::vector<uint64_t> used_in_;             ///< [expert], the turn
  std::vector<Room> rooms_;
  std::vector<uint32_t> missing_;
  std::vector<Entry> kept_;
  uint64_t turn_ = 0;
  uint64_t lookup_ = 0;
};

/// A cache that evicts by the contest of orders. Worth changes as a layer's turn comes, so that the
/// least is looked for; what each layer would lose is remembered until the layer changes.
class ContestCache final : public ReplayCache {
 public:
  explicit ContestCache(const ReplayPool& pool)
      : pool_(pool),
        contest_(contest_layers(pool), pool.used_count),
        rows_(pool.expert_counts.size()) {
    for (size_t layer = 0; layer < rows_.size(); ++layer)
      rows_[layer].place.assign(pool.expert_counts[layer], kAway);
  }

  void play(const RoutingTurn& turn, std::span<uint8_t> hits) override {
    learn(turn);
    Row& row = rows_[turn.layer];
    row.least = kAway;
    for (size_t i = 0; i < turn.experts.size(); ++i) hits[i] = row.place[turn.experts[i]] != kAway;
    const uint32_t slot_count = pool_.slot_count(turn.layer);
    const bool waves = turn.experts.size() > slot_count;
    for (size_t i = 0; i < turn.experts.size(); ++i) {
      if (hits[i] != 0) continue;
      uint32_t& here_count = pool_.kind == PoolKind::ring ? ring_count_ : row.here_count;
      if (here_count == slot_count)
        evict(turn, waves);
      else
        ++here_count;
      row.place[turn.experts[i]] = static_cast<uint32_t>(row.here.size());
      row.here.push_back(turn.experts[i]);
      row.least = kAway;
    }
  }

 private:
  static constexpr uint32_t kAway = ~uint32_t{0};

  struct Row {
    std::vector<uint16_t> here;
    std::vector<uint32_t> place;  ///< [expert] in `here`
    uint32_t here_count = 0;      ///< of the layer pool
    uint32_t least = kAway;       ///< in `here`: who would leave; kAway: to be looked for
  };

  static std::vector<EvictionContest::Layer> contest_layers(const ReplayPool& pool) {
    std::vector<EvictionContest::Layer> layers;
    for (const uint32_t count : pool.expert_counts) {
      // In a ring every layer may lose experts, also one that could have slots for all of them.
      const bool ring = pool.kind == PoolKind::ring && count > 0;
      layers.push_back({count, std::min(pool.slots_per_layer, ring ? count - 1 : count)});
    }
    return layers;
  }

  void learn(const RoutingTurn& turn) {
    if (turn.kind == StepKind::prompt || turn.token_count > 1)
      return contest_.on_prompt_routing(turn.layer, 0, turn.chosen);
    if (turn.step >= next_step_) contest_.begin_token();
    next_step_ = turn.step + 1;
    contest_.on_routing(turn.layer, turn.chosen);
  }

  bool is_asked_for(const RoutingTurn& turn, uint32_t layer, uint16_t expert) const {
    return layer == turn.layer && std::ranges::find(turn.experts, expert) != turn.experts.end();
  }

  void find_least(uint32_t layer, const RoutingTurn& turn, bool waves) {
    Row& row = rows_[layer];
    for (uint32_t i = 0; i < row.here.size(); ++i) {
      if (!waves && is_asked_for(turn, layer, row.here[i])) continue;
      if (row.least == kAway ||
          contest_.leaves_before({layer, row.here[i]}, {layer, row.here[row.least]}))
        row.least = i;
    }
  }

  void evict(const RoutingTurn& turn, bool waves) {
    const bool ring = pool_.kind == PoolKind::ring;
    const auto layer_end = ring ? static_cast<uint32_t>(rows_.size()) : turn.layer + 1;
    uint32_t loser = kAway;
    for (uint32_t layer = ring ? 0 : turn.layer; layer < layer_end; ++layer) {
      Row& row = rows_[layer];
      if (row.least == kAway) find_least(layer, turn, waves);
      if (row.least == kAway) continue;
      if (loser == kAway || contest_.leaves_before({layer, row.here[row.least]},
                                                   {loser, rows_[loser].here[rows_[loser].least]}))
        loser = layer;
    }
    CHECK(loser != kAway);
    Row& row = rows_[loser];
    row.place[row.here[row.least]] = kAway;
    row.here[row.least] = row.here.back();
    row.here.pop_back();
    if (row.least < row.here.size()) row.place[row.here[row.least]] = row.least;
    row.least = kAway;
  }

  const ReplayPool pool_;
  EvictionContest contest_;
  std::vector<Row> rows_;  ///< [layer]
  uint32_t ring_count_ = 0;
  uint64_t next_step_ = 0;
};

constexpr std::array<std::string_view, 4> kPolicyNames = {"lru", "decay", "contest", "belady"};

}  // namespace

std::span<const std::string_view> replay_policy_names() {
  return kPolicyNames;
}

std::unique_ptr<ReplayCache> make_replay_cache(std::string_view policy, const ReplayPool& pool,
                                               const RoutingHistory& history) {
  if (policy == "contest") return std::make_unique<ContestCache>(pool);
  const auto first_expert = number_experts(pool);
  const uint32_t total = first_expert.back();
  std::unique_ptr<KeyRule> rule;
  if (policy == "lru") rule = std::make_unique<RecencyRule>();
  if (policy == "decay") rule = std::make_unique<DecayRule>(total);
  if (policy == "belady") rule = std::make_unique<HindsightRule>(history, first_expert, total);
  CHECK(rule != nullptr);
  return std::make_unique<KeyedCache>(pool, std::move(rule));
}

}  // namespace sluice
