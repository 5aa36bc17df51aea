// The expert cache against a model that is as simple as can be: sets of experts, sorted anew for
// every decision. Both must decide alike over random traffic, for both pools and all policies.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "base/random.h"
#include "experts/cache_test.h"
#include "experts/contest_policy.h"

namespace sluice {
namespace {

struct Held {
  ExpertId id;
  bool reading = false;
  int lease_count = 0;
  bool unused_prefetch = false;
};

/// What the cache promises, in plain words.
class ListModel {
 public:
  ListModel(const CacheSetup& setup, std::unique_ptr<EvictionPolicy> policy)
      : setup_(setup), policy_(std::move(policy)) {
    for (const SlotPlan::Class& slots : setup.plan.classes) free_.push_back(slots.slot_count);
    withdrawn_.resize(free_.size());
    own_quota_ = quota_ = setup.plan.quotas;
  }

  Held* find(ExpertId id) {
    const auto place = std::ranges::find(held_, id, &Held::id);
    return place == held_.end() ? nullptr : &*place;
  }
  std::vector<Held>& held() { return held_; }
  bool is_ring() const { return quota_[first_layer()] == kNoQuota; }

  void begin_tokens(uint32_t count) {
    predicted_.clear();
    first_layer_ahead_ = 0;
    policy_->on_tokens(count);
  }
  void begin_layer(uint32_t layer, Ranking ranking, std::span<const int32_t> chosen) {
    first_layer_ahead_ = layer + 1;
    ranking_ = ranking;
    if (!chosen.empty()) policy_->on_routing(layer, chosen);
  }
  void predict(ExpertId id) { predicted_.insert({id.layer, id.index}); }
  void use(ExpertId id) {
    find(id)->unused_prefetch = false;
    policy_->on_use(number_of(id), 1);
  }

  bool bind(ExpertId id, SlotUse use) {
    const uint32_t slot_class = setup_.plan.class_of[id.layer];
    const bool entitled = held_count(id.layer) < quota_[id.layer];
    if (entitled && free_[slot_class] > 0) {
      --free_[slot_class];
    } else {
      if (use == SlotUse::idle_fill) return false;
      std::optional<ExpertId> victim;
      if (entitled && !is_ring())
        if (const auto giver = most_over_quota(slot_class)) victim = least_useful(*giver, use);
      if (!victim) victim = least_useful(id.layer, use);
      if (!victim) return false;
      drop(*victim);
    }
    held_.push_back({.id = id, .reading = true, .unused_prefetch = use == SlotUse::prefetch});
    return true;
  }

  /// The read of an expert has failed, and nobody has a lease.
  void unbind(ExpertId id) {
    drop(id);
    ++free_[setup_.plan.class_of[id.layer]];
  }

  void end_lending() { quota_ = own_quota_; }
  void lend(const std::vector<ExpertCache::Share>& shares, double kept_share) {
    quota_ = own_quota_;
    if (is_ring()) return;
    const auto borrows = [&](uint32_t layer) {
      return std::ranges::find(shares, layer, &ExpertCache::Share::layer) != shares.end();
    };
    for (uint32_t slot_class = 0; slot_class < free_.size(); ++slot_class) {
      std::map<uint32_t, double> spare;
      double spare_sum = 0, wanted = 0;
      for (const uint32_t layer : layers_of(slot_class))
        if (!borrows(layer))
          spare_sum += spare[layer] =
              own_quota_[layer] - std::floor(own_quota_[layer] * kept_share);
      for (const auto& share : shares)
        if (setup_.plan.class_of[share.layer] == slot_class)
          wanted += std::max(0.0, double(share.slot_count) - own_quota_[share.layer]);
      if (spare_sum == 0) continue;
      double pot = 0;
      for (const auto& [layer, slots] : spare) {
        const double given = std::ceil(slots * std::min(wanted, spare_sum) / spare_sum - 1e-9);
        quota_[layer] -= static_cast<uint32_t>(given);
        pot += given;
      }
      for (const auto& share : shares)
        if (setup_.plan.class_of[share.layer] == slot_class)
          for (; pot > 0 && quota_[share.layer] < share.slot_count; --pot) ++quota_[share.layer];
    }
  }

  bool withdraw(uint32_t slot_class) {
    const std::vector<uint32_t> layers = layers_of(slot_class);
    if (is_ring()) {
      const uint32_t in_use = setup_.plan.classes[0].slot_count - withdrawn_[0];
      if (in_use <= setup_.used_count) return false;
    }
    const uint32_t loser =
        *std::ranges::max_element(layers, {}, [&](uint32_t layer) { return own_quota_[layer]; });
    if (!is_ring() && own_quota_[loser] <= setup_.used_count) return false;
    quota_ = own_quota_;
    if (!is_ring()) quota_[loser] = --own_quota_[loser];
    if (free_[slot_class] > 0) {
      --free_[slot_class];
    } else {
      const uint32_t giver = is_ring() ? loser : *most_over_quota(slot_class);
      const auto victim = least_useful(giver, SlotUse::demand);
      if (!victim) {
        if (!is_ring()) quota_[loser] = ++own_quota_[loser];
        return false;
      }
      drop(*victim);
    }
    ++withdrawn_[slot_class];
    return true;
  }

  bool restore(uint32_t slot_class) {
    if (withdrawn_[slot_class] == 0) return false;
    --withdrawn_[slot_class];
    ++free_[slot_class];
    if (!is_ring()) {
      const std::vector<uint32_t> layers = layers_of(slot_class);
      ++own_quota_[*std::ranges::max_element(layers, {}, [&](uint32_t layer) {
        return setup_.plan.quotas[layer] - own_quota_[layer];
      })];
    }
    quota_ = own_quota_;
    return true;
  }

  const std::vector<uint32_t>& quotas() const { return quota_; }
  uint32_t withdrawn(uint32_t slot_class) const { return withdrawn_[slot_class]; }
  uint32_t held_count(uint32_t layer) const {
    return static_cast<uint32_t>(std::ranges::count_if(
        held_, [&](const Held& one) { return is_ring() || one.id.layer == layer; }));
  }

 private:
  uint32_t first_layer() const {
    uint32_t layer = 0;
    while (setup_.plan.class_of[layer] == kNoSlotClass) ++layer;
    return layer;
  }
  uint32_t number_of(ExpertId id) const {
    uint32_t number = id.index;
    for (uint32_t layer = 0; layer < id.layer; ++layer) number += setup_.expert_counts[layer];
    return number;
  }
  std::vector<uint32_t> layers_of(uint32_t slot_class) const {
    std::vector<uint32_t> layers;
    for (uint32_t layer = 0; layer < setup_.plan.class_of.size(); ++layer)
      if (setup_.plan.class_of[layer] == slot_class) layers.push_back(layer);
    return layers;
  }
  std::optional<uint32_t> most_over_quota(uint32_t slot_class) const {
    std::optional<uint32_t> giver;
    int64_t most = 0;
    for (const uint32_t layer : layers_of(slot_class)) {
      const int64_t over = int64_t{held_count(layer)} - quota_[layer];
      if (over > most) giver = layer, most = over;
    }
    return giver;
  }
  bool is_predicted(ExpertId id) const {
    return id.layer >= first_layer_ahead_ && predicted_.contains({id.layer, id.index});
  }
  std::optional<ExpertId> least_useful(uint32_t layer, SlotUse use) const {
    std::vector<Held> free;
    for (const Held& one : held_)
      if ((is_ring() || one.id.layer == layer) && !one.reading && one.lease_count == 0)
        free.push_back(one);
    std::ranges::sort(free, [&](const Held& a, const Held& b) {
      if (is_predicted(a.id) != is_predicted(b.id)) return is_predicted(b.id);
      if (a.unused_prefetch != b.unused_prefetch) return a.unused_prefetch;
      return policy_->leaves_before(number_of(a.id), number_of(b.id), ranking_);
    });
    if (free.empty()) return std::nullopt;
    if (use != SlotUse::demand && is_predicted(free[0].id)) return std::nullopt;
    return free[0].id;
  }
  void drop(ExpertId id) {
    std::erase_if(held_, [&](const Held& one) { return one.id == id; });
  }

  const CacheSetup setup_;
  std::unique_ptr<EvictionPolicy> policy_;
  std::vector<Held> held_;
  std::vector<uint32_t> free_, withdrawn_;   ///< [class]
  std::vector<uint32_t> own_quota_, quota_;  ///< [layer]
  std::set<std::pair<uint32_t, uint32_t>> predicted_;
  uint32_t first_layer_ahead_ = 0;
  Ranking ranking_ = Ranking::worth;
};

/// Two classes of layers, one layer without experts.
CacheSetup layers_of_two_sizes() {
  return {.expert_counts = {7, 20, 0, 33, 12, 9},
          .plan = plan_layer_pool({64, 128, 0, 64, 128, 64}, {3, 9, 0, 8, 5, 2}),
          .used_count = 2};
}

enum class Policy : uint8_t { lru, decay, contest };

class CacheTraffic {
 public:
  CacheTraffic(const CacheSetup& setup, Policy policy, uint64_t seed)
      : setup_(setup),
        random_(seed),
        cache_(setup, make_policy(policy)),
        model_(setup, make_policy(policy)) {}

  void step() {
    switch (random_.below(16)) {
      case 0:
        return begin_tokens();
      case 1:
        return predict();
      case 2:
        return begin_layer();
      case 3:
      case 4:
        return bring(SlotUse::prefetch);
      case 5:
        return bring(random_.below(2) == 0 ? SlotUse::idle_fill : SlotUse::prefetch);
      case 6:
        return lease();
      case 7:
        return drop_leases();
      case 8:
      case 9:
        return end_reads();
      case 10:
        return random_.below(6) == 0 ? move_quotas() : use();
      default:
        return use();
    }
  }

  void check() {
    for (uint32_t layer = 0; layer < setup_.expert_counts.size(); ++layer) {
      ASSERT_EQ(cache_->quota(layer), model_.quotas()[layer]) << "layer " << layer;
      for (uint32_t index = 0; index < setup_.expert_counts[layer]; ++index)
        ASSERT_EQ(cache_.holds({layer, index}), model_.find({layer, index}) != nullptr)
            << layer << ' ' << index;
      if (setup_.expert_counts[layer] == 0) continue;
      ASSERT_EQ(cache_->slot_count(layer), model_.held_count(layer));
    }
    for (uint32_t slot_class = 0; slot_class < setup_.plan.classes.size(); ++slot_class) {
      ASSERT_EQ(cache_->withdrawn_count(slot_class), model_.withdrawn(slot_class));
      check_sums(slot_class);
    }
  }

 private:
  std::unique_ptr<EvictionPolicy> make_policy(Policy policy) const {
    const uint32_t experts = TestedCache::expert_total(setup_);
    if (policy == Policy::lru) return std::make_unique<LruPolicy>(experts);
    if (policy == Policy::decay) return std::make_unique<DecayPolicy>(experts, 5);
    return std::make_unique<ContestPolicy>(plan_contest(setup_.plan, setup_.expert_counts),
                                           setup_.used_count);
  }

  /// Quotas never promise more than there is, nor less than the experts of one token.
  void check_sums(uint32_t slot_class) {
    uint64_t quotas = 0;
    for (uint32_t layer = 0; layer < setup_.expert_counts.size(); ++layer) {
      if (setup_.plan.class_of[layer] != slot_class) continue;
      ASSERT_TRUE(is_lending_ || cache_->quota(layer) >= setup_.used_count);
      quotas += cache_->quota(layer);
    }
    if (cache_->quota(0) == kNoQuota) return;
    ASSERT_LE(quotas, setup_.plan.classes[slot_class].slot_count - model_.withdrawn(slot_class));
  }

  uint32_t any_layer() {
    for (;;) {
      const auto layer = static_cast<uint32_t>(random_.below(setup_.expert_counts.size()));
      if (setup_.expert_counts[layer] > 0) return layer;
    }
  }
  ExpertId any_expert() {
    const uint32_t layer = any_layer();
    return {layer,
            static_cast<uint32_t>(random_.below(1 + random_.below(setup_.expert_counts[layer])))};
  }

  void begin_tokens() {
    token_count_ = static_cast<uint32_t>(random_.below(4) == 0 ? random_.below(200) : 1);
    cache_->begin_tokens(token_count_);
    model_.begin_tokens(token_count_);
  }
  /// What a router may say: for each token other experts, the low numbers more often.
  std::vector<int32_t> any_routing(uint32_t layer) {
    std::vector<int32_t> chosen;
    for (uint32_t token = 0; token < token_count_; ++token) {
      const size_t first = chosen.size();
      while (chosen.size() < first + setup_.used_count) {
        const auto expert =
            static_cast<int32_t>(random_.below(1 + random_.below(setup_.expert_counts[layer])));
        if (std::find(chosen.begin() + static_cast<std::ptrdiff_t>(first), chosen.end(), expert) ==
            chosen.end())
          chosen.push_back(expert);
      }
    }
    return chosen;
  }
  void begin_layer() {
    const uint32_t layer = any_layer();
    const Ranking ranking = random_.below(3) == 0 ? Ranking::recency : Ranking::worth;
    const std::vector<int32_t> chosen = any_routing(layer);
    cache_->begin_layer(layer, ranking, chosen);
    model_.begin_layer(layer, ranking, chosen);
  }
  void predict() {
    for (int i = 0; i < 3; ++i) {
      const ExpertId id = any_expert();
      cache_->predict(id);
      model_.predict(id);
    }
  }
  void bring(SlotUse use) {
    const ExpertId id = any_expert();
    if (model_.find(id) == nullptr) bind(id, use);
  }
  void use() {
    const ExpertId id = any_expert();
    if (model_.find(id) == nullptr && !bind(id, SlotUse::demand)) return;
    cache_->use(cache_->find(id), 1);
    model_.use(id);
  }
  bool bind(ExpertId id, SlotUse use) {
    const bool bound = model_.bind(id, use);
    const SlotIndex slot = cache_->bind(id, use);
    EXPECT_EQ(slot != kNoSlot, bound);
    if (slot == kNoSlot) return false;
    EXPECT_EQ(cache_.state(slot).phase(), SlotPhase::empty);
    EXPECT_EQ(cache_->id_of(slot), id);
    EXPECT_EQ(cache_.table().class_of_slot(slot), setup_.plan.class_of[id.layer]);
    cache_.state(slot).begin_read();
    if (random_.below(3) > 0) land(*model_.find(id));
    return true;
  }
  void land(Held& one) {
    cache_.state(one.id).part_ready(TestedCache::kOnlyPart, TestedCache::kOnlyPart);
    one.reading = false;
  }
  void end_reads() {
    std::vector<ExpertId> reading;
    for (const Held& one : model_.held())
      if (one.reading && random_.below(2) == 0) reading.push_back(one.id);
    for (const ExpertId id : reading) {
      Held& one = *model_.find(id);
      if (one.lease_count > 0 || random_.below(4) > 0) {
        land(one);
        continue;
      }
      const SlotIndex slot = cache_->find(id);
      cache_.state(slot).fail();
      cache_->unbind(slot);
      model_.unbind(id);
    }
  }
  void lease() {
    if (model_.held().empty()) return;
    Held& one = model_.held()[random_.below(model_.held().size())];
    cache_.state(one.id).add_lease();
    ++one.lease_count;
  }
  void drop_leases() {
    for (Held& one : model_.held())
      for (; one.lease_count > 0 && random_.below(4) > 0; --one.lease_count)
        cache_.state(one.id).drop_lease();
  }
  void move_quotas() {
    const auto slot_class = static_cast<uint32_t>(random_.below(setup_.plan.classes.size()));
    switch (random_.below(4)) {
      case 0: {
        std::vector<ExpertCache::Share> shares;
        for (uint32_t layer = any_layer(); layer < setup_.expert_counts.size(); ++layer)
          if (setup_.expert_counts[layer] > 0 && random_.below(2) == 0)
            shares.push_back({layer, static_cast<uint32_t>(random_.below(25))});
        const double kept_share = std::array{0.0, 0.3, 0.5, 1.0}[random_.below(4)];
        cache_->lend(shares, kept_share);
        is_lending_ = true;
        return model_.lend(shares, kept_share);
      }
      case 1:
        cache_->end_lending();
        is_lending_ = false;
        return model_.end_lending();
      case 2:
        for (uint64_t i = random_.below(5); i > 0; --i) {
          is_lending_ = false;
          const bool had = model_.withdraw(slot_class);
          const SlotIndex slot = cache_->withdraw(slot_class);
          ASSERT_EQ(slot != kNoSlot, had);
          if (!had) continue;
          ASSERT_EQ(cache_.state(slot).phase(), SlotPhase::empty);
        }
        return;
      default:
        for (uint64_t i = random_.below(5); i > 0; --i)
          ASSERT_EQ(cache_->restore(slot_class) != kNoSlot, model_.restore(slot_class));
    }
  }

  const CacheSetup setup_;
  Random random_;
  TestedCache cache_;
  ListModel model_;
  uint32_t token_count_ = 1;
  bool is_lending_ = false;
};

class ExpertCacheRandom : public ::testing::TestWithParam<std::tuple<bool, Policy>> {};

TEST_P(ExpertCacheRandom, IsTheSimpleModel) {
  const auto [ring, policy] = GetParam();
  for (uint64_t seed = 1; seed <= 25 && !HasFatalFailure(); ++seed) {
    SCOPED_TRACE(seed);
    CacheTraffic traffic(ring ? ring_setup({7, 20, 0, 33, 12}, 14, 3) : layers_of_two_sizes(),
                         policy, seed);
    for (int step = 0; step < 1500 && !HasFailure(); ++step) {
      traffic.step();
      traffic.check();
    }
  }
}

std::string name_of(const ::testing::TestParamInfo<std::tuple<bool, Policy>>& test) {
  constexpr std::array kNames = {"lru", "decay", "contest"};
  return std::string(std::get<0>(test.param) ? "ring_" : "layer_") +
         kNames[static_cast<size_t>(std::get<1>(test.param))];
}

INSTANTIATE_TEST_SUITE_P(Pools, ExpertCacheRandom,
                         ::testing::Combine(::testing::Bool(),
                                            ::testing::Values(Policy::lru, Policy::decay,
                                                              Policy::contest)),
                         name_of);

}  // namespace
}  // namespace sluice
