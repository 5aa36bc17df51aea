#include "experts/expert_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <list>
#include <string>
#include <string_view>

#include "base/random.h"

namespace sluice {
namespace {

constexpr PartMask kOnlyPart = 1;

/// A cache over slots whose reads end at once. Layer i has expert_counts[i] experts in
/// slot_counts[i] slots.
class Cache {
 public:
  Cache(const std::vector<uint32_t>& expert_counts, const std::vector<uint32_t>& slot_counts) {
    std::vector<SlotPool::Layer> layers;
    for (const uint32_t count : slot_counts)
      layers.push_back({SlotLayout{.slot_bytes = 64, .alignment = 64}, count});
    auto pool = SlotPool::allocate(std::move(layers), ledger_);
    CHECK(pool.ok());
    pool_ = std::move(*pool);
    cache_.emplace(*pool_, expert_counts, std::make_unique<LruPolicy>(pool_->slot_total()));
  }

  ExpertCache& operator*() { return *cache_; }
  ExpertCache* operator->() { return &*cache_; }
  SlotState& state(SlotIndex slot) { return pool_->state(slot); }
  SlotPool& pool() { return *pool_; }

  /// Uses an expert as a token does: true when it was there.
  bool use(ExpertId id) {
    const SlotIndex slot = cache_->find(id);
    if (slot != kNoSlot) {
      cache_->touch(slot);
      return true;
    }
    fill(cache_->bind(id));
    return false;
  }

  void fill(SlotIndex slot) {
    ASSERT_NE(slot, kNoSlot);
    state(slot).begin_read();
    state(slot).part_ready(kOnlyPart, kOnlyPart);
  }

 private:
  Ledger ledger_;
  std::unique_ptr<SlotPool> pool_;
  std::optional<ExpertCache> cache_;
};

uint64_t count_misses(const std::vector<uint32_t>& trace, uint32_t expert_count, uint32_t slots) {
  Cache cache({expert_count}, {slots});
  uint64_t misses = 0;
  for (const uint32_t expert : trace) misses += cache.use({0, expert}) ? 0 : 1;
  return misses;
}

// The reference strings of the textbooks on paging: Silberschatz, Galvin and Gagne; Belady.
TEST(ExpertCache, MissesAsTheTextbooksCount) {
  const std::vector<uint32_t> silberschatz{7, 0, 1, 2, 0, 3, 0, 4, 2, 3,
                                           0, 3, 2, 1, 2, 0, 1, 7, 0, 1};
  EXPECT_EQ(count_misses(silberschatz, 8, 3), 12u);
  EXPECT_EQ(count_misses(silberschatz, 8, 4), 8u);
  const std::vector<uint32_t> belady{1, 2, 3, 4, 1, 2, 5, 1, 2, 3, 4, 5};
  EXPECT_EQ(count_misses(belady, 6, 3), 10u);
  EXPECT_EQ(count_misses(belady, 6, 4), 8u);
}

TEST(ExpertCache, ACycleLongerThanTheCacheNeverHits) {
  std::vector<uint32_t> cycle;
  for (uint32_t i = 0; i < 90; ++i) cycle.push_back(i % 9);
  EXPECT_EQ(count_misses(cycle, 9, 8), 90u);
  EXPECT_EQ(count_misses(cycle, 9, 9), 9u);
}

/// The routing of a small model, recorded: "layer token expert expert …".
std::vector<ExpertId> recorded_routing() {
  std::ifstream file(SLUICE_SOURCE_DIR "/tests/data/cases/qwen3moe/experts.txt");
  std::vector<std::array<uint32_t, 6>> rows;
  for (std::array<uint32_t, 6> row; true; rows.push_back(row)) {
    for (uint32_t& value : row) file >> value;
    if (!file) break;
  }
  std::ranges::stable_sort(rows, {}, [](const auto& row) { return row[1]; });  // token by token
  std::vector<ExpertId> trace;
  for (const auto& row : rows)
    for (size_t i = 2; i < row.size(); ++i) trace.push_back({row[0], row[i]});
  return trace;
}

/// Misses of LRU by stack distance (Mattson et al. 1970): an expert is there if fewer than `slots`
/// others of its layer were used since its last use.
uint64_t misses_by_stack_distance(const std::vector<ExpertId>& trace, size_t slots) {
  uint64_t misses = 0;
  for (size_t i = 0; i < trace.size(); ++i) {
    std::vector<uint32_t> since;
    size_t j = i;
    while (j > 0 && trace[j - 1] != trace[i]) {
      --j;
      if (trace[j].layer != trace[i].layer) continue;
      if (std::ranges::find(since, trace[j].index) == since.end()) since.push_back(trace[j].index);
    }
    const bool used_before = j > 0;
    misses += used_before && since.size() < slots ? 0 : 1;
  }
  return misses;
}

TEST(ExpertCache, ReplaysARecordedRouting) {
  const std::vector<ExpertId> trace = recorded_routing();
  ASSERT_EQ(trace.size(), 3u * 24 * 4);
  uint64_t fewest = trace.size();
  for (uint32_t slots = 4; slots <= 16; ++slots) {
    Cache cache({16, 16, 16}, {slots, slots, slots});
    uint64_t misses = 0;
    for (const ExpertId id : trace) misses += cache.use(id) ? 0 : 1;
    EXPECT_EQ(misses, misses_by_stack_distance(trace, slots)) << slots;
    EXPECT_LE(misses, fewest) << "LRU has no anomaly";
    fewest = misses;
    if (slots == 16) {
      EXPECT_EQ(misses, 15u + 16 + 16) << "each expert once";
    }
  }
}

/// LRU once more: a list for each layer, the most recently used at the front.
class ListModel {
 public:
  explicit ListModel(std::vector<uint32_t> slot_counts)
      : slot_counts_(std::move(slot_counts)), used_(slot_counts_.size()) {}

  bool holds(ExpertId id) const {
    const auto& list = used_[id.layer];
    return std::find(list.begin(), list.end(), id.index) != list.end();
  }
  void use(ExpertId id) {
    used_[id.layer].remove(id.index);
    used_[id.layer].push_front(id.index);
  }
  /// Makes room for one more, sparing what is leased. False when nothing may leave.
  template <typename IsLeased>
  bool make_room(uint32_t layer, const IsLeased& is_leased) {
    auto& list = used_[layer];
    if (list.size() < slot_counts_[layer]) return true;
    for (auto place = list.rbegin(); place != list.rend(); ++place) {
      if (is_leased(ExpertId{layer, *place})) continue;
      list.erase(std::next(place).base());
      return true;
    }
    return false;
  }

 private:
  const std::vector<uint32_t> slot_counts_;
  std::vector<std::list<uint32_t>> used_;
};

TEST(ExpertCache, IsTheSimpleModelOverRandomTraces) {
  const std::vector<uint32_t> experts{7, 20, 0, 33}, slots{2, 9, 0, 5};
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    Cache cache(experts, slots);
    ListModel model(slots);
    std::vector<ExpertId> leased;
    const auto is_leased = [&](ExpertId id) {
      return std::ranges::find(leased, id) != leased.end();
    };
    for (int step = 0; step < 3000; ++step) {
      const auto layer = std::array<uint32_t, 3>{0, 1, 3}[random.below(3)];
      const ExpertId id{layer, static_cast<uint32_t>(random.below(experts[layer]))};
      const bool here = model.holds(id);
      ASSERT_EQ(cache->find(id) != kNoSlot, here);
      if (here) {
        cache->touch(cache->find(id));
        model.use(id);
      } else {
        const SlotIndex slot = cache->bind(id);
        ASSERT_EQ(slot != kNoSlot, model.make_room(layer, is_leased));
        if (slot == kNoSlot) continue;
        ASSERT_EQ(cache.state(slot).phase(), SlotPhase::empty);
        ASSERT_EQ(cache->find(id), slot);
        ASSERT_GE(slot, cache.pool().first_slot(layer));
        ASSERT_LT(slot, cache.pool().first_slot(layer) + slots[layer]);
        cache.fill(slot);
        model.use(id);
      }
      if (random.below(3) == 0 && !is_leased(id)) {
        cache.state(cache->find(id)).add_lease();
        leased.push_back(id);
      }
      while (leased.size() > 8 || (!leased.empty() && random.below(4) == 0)) {
        const size_t index = random.below(leased.size());
        ASSERT_NE(cache->find(leased[index]), kNoSlot) << "a leased slot has left";
        cache.state(cache->find(leased[index])).drop_lease();
        leased.erase(leased.begin() + static_cast<std::ptrdiff_t>(index));
      }
    }
  }
}

TEST(ExpertCache, SlotsBeingReadStay) {
  Cache cache({5}, {2});
  const SlotIndex first = cache->bind({0, 0});
  cache.state(first).begin_read();
  cache.use({0, 1});
  const SlotIndex slot = cache->bind({0, 2});
  EXPECT_NE(slot, first);
  EXPECT_EQ(cache->find({0, 1}), kNoSlot);
  cache.state(slot).begin_read();
  EXPECT_EQ(cache->bind({0, 3}), kNoSlot);
  EXPECT_EQ(cache->eviction_count(), 1u);
}

TEST(ExpertCache, AFailedSlotIsDiscardedAndUsedAgain) {
  Cache cache({5}, {1});
  const SlotIndex slot = cache->bind({0, 0});
  cache.state(slot).begin_read();
  cache.state(slot).fail();
  EXPECT_EQ(cache->bind({0, 1}), kNoSlot) << "its reads may still be in flight";
  cache->discard(slot);
  EXPECT_EQ(cache->find({0, 0}), kNoSlot);
  EXPECT_EQ(cache.state(slot).phase(), SlotPhase::empty);
  EXPECT_EQ(cache->bind({0, 1}), slot);
  EXPECT_EQ(cache->eviction_count(), 0u);
}

TEST(ExpertCache, DistinctExpertsAreCountedFromTheMark) {
  Cache cache({4}, {2});
  EXPECT_TRUE(cache->first_since_mark({0, 3}));
  EXPECT_FALSE(cache->first_since_mark({0, 3}));
  EXPECT_TRUE(cache->first_since_mark({0, 1}));
  cache->mark();
  EXPECT_TRUE(cache->first_since_mark({0, 3}));
}

TEST(ExpertCache, ClearingForgetsEveryExpert) {
  Cache cache({4, 4}, {2, 3});
  for (const uint32_t layer : {0u, 1u})
    for (const uint32_t index : {0u, 1u}) cache.use({layer, index});
  cache->clear();
  for (SlotIndex slot = 0; slot < 5; ++slot) EXPECT_EQ(cache.state(slot).phase(), SlotPhase::empty);
  EXPECT_FALSE(cache.use({1, 1}));
  EXPECT_EQ(cache->eviction_count(), 0u) << "being emptied is not being evicted";
}

TEST(ExpertCacheDeathTest, OurOwnMistakesStopTheProcess) {
  Cache cache({5}, {2});
  cache.use({0, 1});
  EXPECT_DEATH(cache->bind({0, 1}), "check failed") << "it has a slot";
  EXPECT_DEATH(cache->discard(cache->find({0, 1})), "check failed") << "it has not failed";
}

}  // namespace
}  // namespace sluice
