#include "forward/moe_layer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/random.h"
#include "experts/streamed_test.h"

namespace sluice {
namespace {

constexpr size_t kUsed = 2;

/// Computes nothing, but looks at the matrices it is given: gate and up in the first stage, down in
/// the second, each pair once in each.
class LookingBackend final : public Backend {
 public:
  LookingBackend(Streamed& test, const Grouping& grouping) : test_(test), grouping_(grouping) {}

  uint32_t layer = 0;
  std::vector<uint32_t> first_stage, second_stage;  ///< experts, in the order of computing
  std::function<void()> on_computing;

  void expert_gate_up(std::span<const ExpertWork> works, const BatchBuffers&) override {
    ASSERT_FALSE(works.empty());
    for (const ExpertWork& work : works) {
      const ExpertId id = expert_of(work);
      ASSERT_TRUE(Streamed::are_equal(work.view.gate, test_.in_file(id).gate)) << id.index;
      ASSERT_TRUE(Streamed::are_equal(work.view.up, test_.in_file(id).up)) << id.index;
      first_stage.push_back(id.index);
    }
    if (on_computing) on_computing();
  }
  void expert_down(std::span<const ExpertWork> works, const BatchBuffers&) override {
    ASSERT_FALSE(works.empty());
    for (const ExpertWork& work : works) {
      const ExpertId id = expert_of(work);
      ASSERT_TRUE(Streamed::are_equal(work.view.down, test_.in_file(id).down)) << id.index;
      ASSERT_NE(std::ranges::find(first_stage, id.index), first_stage.end());
      second_stage.push_back(id.index);
    }
    if (on_computing) on_computing();
  }
  void embed(std::span<const int32_t>, float*) override {}
  void mix_tokens(size_t, size_t, size_t, SequenceState&, float*) override {}
  void route(size_t, size_t, size_t, const BatchBuffers&) override {}
  void predict(std::span<const uint32_t>, const float*, float*) override {}
  void combine(size_t, size_t, const BatchBuffers&) override {}
  void add_ffn(size_t, size_t, const BatchBuffers&) override {}
  void prepare_ffn(size_t, size_t, size_t, const BatchBuffers&) override {}
  void route_early(size_t, size_t, size_t, const BatchBuffers&) override {}
  void output(size_t, const float*, float*) override {}

 private:
  /// Whose work it is, and that it is whole.
  ExpertId expert_of(const ExpertWork& work) const {
    for (const ExpertGroup& group : grouping_.groups()) {
      if (group.first_pair != work.first_pair) continue;
      EXPECT_EQ(work.token_count, group.token_count);
      EXPECT_EQ(work.tokens, grouping_.token_of_pair() + group.first_pair);
      return {layer, group.expert};
    }
    ADD_FAILURE() << "no group begins at pair " << work.first_pair;
    return {};
  }

  Streamed& test_;
  const Grouping& grouping_;
};

/// A layer of a batch over a store, from the routing to the last pair.
class MoeLayerRun {
 public:
  explicit MoeLayerRun(const StreamedOptions& options, size_t pairs_per_step = 1000)
      : test_(options),
        grouping_(64, kUsed, kExperts),
        backend_(test_, grouping_),
        moe_(backend_, test_.store(), kExperts, pairs_per_step) {}

  Streamed& test() { return test_; }
  ExpertStore& store() { return test_.store(); }
  LookingBackend& backend() { return backend_; }

  void start(uint32_t layer, const std::vector<int32_t>& chosen, Ranking ranking) {
    grouping_.group(chosen, kExperts);
    backend_.layer = layer;
    backend_.first_stage.clear();
    backend_.second_stage.clear();
    store().begin_layer(layer, chosen, ranking);
    moe_.start(layer, grouping_, ranking);
  }
  Status finish(const std::atomic<bool>* stop = nullptr) {
    return moe_.finish(grouping_, BatchBuffers{}, stop);
  }

  /// Runs the layer. Each expert is computed once, and read only if it was neither here nor on its
  /// way.
  void run(uint32_t layer, const std::vector<int32_t>& chosen, Ranking ranking) {
    const std::set<int32_t> distinct(chosen.begin(), chosen.end());
    size_t absent = 0;
    for (const int32_t expert : distinct)
      absent += store().whereabouts({layer, static_cast<uint32_t>(expert)}) == Whereabouts::absent;
    const ExpertStats before = store().stats();
    start(layer, chosen, ranking);
    ASSERT_TRUE(finish().ok());
    for (std::vector<uint32_t> stage : {backend_.first_stage, backend_.second_stage}) {
      std::ranges::sort(stage);
      ASSERT_TRUE(std::ranges::equal(stage, distinct, {}, {},
                                     [](int32_t expert) { return static_cast<uint32_t>(expert); }));
    }
    const ExpertStats after = store().stats();
    ASSERT_EQ(after.lookup_count - before.lookup_count, distinct.size());
    ASSERT_EQ(after.miss_count - before.miss_count, absent) << "read twice, or for nothing";
    test_.check_sums();
  }

 private:
  Streamed test_;
  Grouping grouping_;
  LookingBackend backend_;
  MoeLayer moe_;
};

TEST(MoeLayer, WhatIsHereComputesWhileTheOthersAreRead) {
  MoeLayerRun layer({.slots = {9, 9, 9}});
  for (const uint32_t index : {6u, 8u}) layer.test().load({0, index});
  layer.run(0, {1, 8, 0, 6}, Ranking::worth);
  EXPECT_EQ(layer.backend().first_stage[0], 6u);
  EXPECT_EQ(layer.backend().first_stage[1], 8u);
}

TEST(MoeLayer, GateAndUpComputeBeforeDownIsHere) {
  MoeLayerRun layer(
      {.drive = {.seed = 2, .delay_max_ns = 50'000'000, .planned = {{2, FakeFault::delayed}}}});
  layer.start(0, {3, 3}, Ranking::worth);
  layer.backend().on_computing = [&] {
    if (!layer.backend().second_stage.empty()) return;
    EXPECT_LT(layer.test().drive().now_ns(), layer.test().drive().log()[2].finished_ns);
  };
  ASSERT_TRUE(layer.finish().ok());
}

/// Two slots, nine experts: a prompt goes in waves, in the order of the file.
TEST(MoeLayer, WavesFollowTheFile) {
  MoeLayerRun layer({.slots = {2, 2, 2}}, 1);
  layer.run(0, {8, 7, 6, 5, 4, 3, 2, 1, 0, 0}, Ranking::recency);
  EXPECT_TRUE(std::ranges::is_sorted(layer.backend().second_stage));
  EXPECT_TRUE(layer.store().is_resident({0, 7}) && layer.store().is_resident({0, 8}));
}

/// The last batch of a prompt ends with what the end of the text used.
TEST(MoeLayer, TheLastWaveIsWhatTheEndOfTheTextWants) {
  for (const uint32_t half_life : {0u, 64u}) {
    MoeLayerRun layer({.slots = {2, 2, 2}, .half_life = half_life}, 1);
    layer.run(0, {8, 7, 6, 5, 4, 3, 2, 1, 0, 0}, Ranking::worth);
    EXPECT_EQ(layer.backend().second_stage, (std::vector<uint32_t>{7, 8, 5, 6, 3, 4, 1, 2, 0}));
    EXPECT_TRUE(layer.store().is_resident({0, 0}));
  }
}

/// A guess on its way, chosen, must not make room for those that nobody foresaw.
TEST(MoeLayer, WhatIsOnItsWayIsNotReadTwice) {
  MoeLayerRun layer({.slots = {2, 2, 2}});
  layer.store().guess({.id = {0, 8}});
  layer.store().pump();
  ASSERT_EQ(layer.store().whereabouts({0, 8}), Whereabouts::guessed);
  layer.run(0, {0, 1, 2, 3, 8, 4}, Ranking::recency);
  EXPECT_EQ(layer.store().stats().join_count, 1u);
  EXPECT_EQ(layer.store().stats().guesses[1].useful_count, 1u);
}

TEST(MoeLayer, AReadErrorEndsTheBatchAndNothingIsLeased) {
  MoeLayerRun layer({.drive = {.planned = {{4, FakeFault::broken}}}});
  layer.start(0, {0, 1, 2, 3}, Ranking::worth);
  const Status done = layer.finish();
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().kind, ErrorKind::io);
  EXPECT_FALSE(layer.store().is_reading());
  layer.test().check_at_rest();
  for (SlotIndex slot = 0; slot < layer.test().pool().table().slot_total(); ++slot)
    EXPECT_EQ(layer.test().pool().state(slot).lease_count(), 0u);
  layer.run(0, {0, 1, 2, 3}, Ranking::worth);
}

TEST(MoeLayer, ItMayBeStoppedAtAnyStep) {
  for (int steps = 0; steps < 8; ++steps) {
    MoeLayerRun layer({.slots = {2, 2, 2}}, 1);
    std::atomic<bool> stop{steps == 0};
    int left = steps;
    layer.backend().on_computing = [&] { stop = --left <= 0; };
    layer.start(0, {0, 1, 2, 3, 4, 5}, Ranking::recency);
    const Status done = layer.finish(&stop);
    ASSERT_FALSE(done.ok());
    EXPECT_EQ(done.error().kind, ErrorKind::interrupted);
    layer.test().check_at_rest();
    layer.backend().on_computing = {};
    layer.run(0, {0, 1, 2, 3, 4, 5}, Ranking::recency);
  }
}

/// Any routing, any pool, guesses for all layers, over a drive that is slow and out of order.
TEST(MoeLayer, ComputesEachExpertOnceOverRandomTraffic) {
  for (uint64_t seed = 1; seed <= 150 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    StreamedOptions options{.drive = {.seed = seed,
                                      .depth_max = 2 + random.below(12),
                                      .shares = {.interrupted = 0.1, .delayed = 0.2},
                                      .reorder = random.below(2) == 0}};
    const auto slots = [&] { return static_cast<uint32_t>(kUsed + random.below(4)); };
    options.slots = {slots(), slots(), slots()};
    if (random.below(3) == 0) options.ring_slots = slots();
    options.half_life = random.below(2) == 0 ? 0 : 64;
    MoeLayerRun run(options, 1 + random.below(20));
    const auto guess = [&](uint32_t target) {
      for (uint64_t i = random.below(4); i > 0; --i)
        run.store().guess({.id = {target, static_cast<uint32_t>(random.below(kExperts))},
                           .distance = 1 + static_cast<uint32_t>(random.below(3))});
      run.store().pump();
    };
    run.backend().on_computing = [&] {
      guess((run.backend().layer + 1 + static_cast<uint32_t>(random.below(2))) % 3);
    };
    for (int token = 0; token < 12 && !testing::Test::HasFailure(); ++token) {
      run.store().begin_tokens(1);
      for (uint32_t layer = 0; layer < 3 && !testing::Test::HasFailure(); ++layer) {
        guess(static_cast<uint32_t>(random.below(3)));
        if (random.below(2) == 0) run.test().drive().advance(random.below(200'000));
        std::vector<int32_t> chosen;
        for (size_t i = kUsed * (1 + random.below(5)); i > 0; --i)
          chosen.push_back(static_cast<int32_t>(random.below(kExperts)));
        run.run(layer, chosen, random.below(2) == 0 ? Ranking::recency : Ranking::worth);
      }
    }
  }
}

}  // namespace
}  // namespace sluice
