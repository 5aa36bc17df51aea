// Streaming decides when bytes arrive, never what is computed: over batches of any size, guesses
// right and wrong, slots lent and given back, a whole model gives the same logits to the last bit.
// Where the cache can hold a layer, a prompt reads each of its experts once, however it is cut.
#include <gtest/gtest.h>

#include "tests/support/streamed_model.h"

namespace sluice {
namespace {

class StreamingSchedule : public StreamedModel {
 protected:
  HandBuiltOptions one_step(size_t batch_tokens) const {
    HandBuiltOptions options;
    options.step_tokens = tokens_.size();
    options.batch_tokens = batch_tokens;
    options.ubatch_tokens = std::min<size_t>(batch_tokens, 8);
    return options;
  }

  /// Every layer's experts fit in the slots of all layers of its size class.
  bool lending_holds_a_layer(const HandBuiltOptions& options) {
    HandBuiltEngine engine(*model_, pool_, options);
    const SlotPlan& plan = engine.slots().table().plan();
    return std::ranges::all_of(plan.classes, [&](const SlotPlan::Class& slots) {
      return slots.slot_count >= expert_count();
    });
  }

  /// The prompt in one step: right, and read at most once.
  void expect_read_once(const HandBuiltOptions& options) {
    HandBuiltEngine engine(*model_, pool_, options);
    const uint64_t expected_reads = reads_at_most_once(engine, 0, tokens_.size());
    EXPECT_EQ(engine.drive().log().size(), expected_reads);
    engine.reset();
    append_and_compare(engine, options.kv, 0, tokens_.size());
    expect_clean(engine);
  }

  /// Guesses anything for any layer at every layer's attention.
  void guess_at_random(HandBuiltEngine& engine, Random& random) const {
    engine.routing().on_attention = [&](size_t layer) {
      for (uint64_t i = random.below(6); i > 0; --i) {
        const auto target = static_cast<uint32_t>(random.below(layer_count()));
        engine.store().guess(
            {.id = {target, static_cast<uint32_t>(random.below(expert_count()))},
             .distance = target > layer ? target - static_cast<uint32_t>(layer) : kNextToken,
             .rank = static_cast<uint32_t>(random.below(8))});
      }
      if (random.below(10) == 0) engine.store().drop_guesses();
    };
  }
};

TEST_P(StreamingSchedule, BatchesOfEverySize) {
  for (const size_t batch_tokens : {1, 2, 7, 16, 29})
    for (const uint32_t slots : {used_count(), used_count() + 3, expert_count()})
      for (const EvictionKind evict : kEvictions) {
        SCOPED_TRACE(testing::Message() << batch_tokens << " tokens, " << slots << " slots");
        HandBuiltOptions options = one_step(batch_tokens);
        options.slots_per_layer = slots;
        options.evict = evict;
        HandBuiltEngine engine(*model_, pool_, options);
        append_and_compare(engine, options.kv, 0, 20);
        for (size_t i = 20; i < 24; ++i) append_and_compare(engine, options.kv, i, 1);
        append_and_compare(engine, options.kv, 24, 6);
        expect_clean(engine);
      }
}

TEST_P(StreamingSchedule, AnExpertIsReadOnceAPromptWhereEachLayerHasRoomForAll) {
  for (const size_t batch_tokens : {1, 4, 13, 30})
    for (const EvictionKind evict : kEvictions) {
      SCOPED_TRACE(batch_tokens);
      HandBuiltOptions options = one_step(batch_tokens);
      options.evict = evict;
      expect_read_once(options);
    }
}

/// A ring that holds the experts of one layer, and hardly more.
TEST_P(StreamingSchedule, AnExpertIsReadOnceAPromptWhereTheRingHoldsALayer) {
  for (const size_t batch_tokens : {1, 4, 13, 30})
    for (const uint32_t ring_slots : {expert_count(), expert_count() + 3})
      for (const EvictionKind evict : kEvictions) {
        SCOPED_TRACE(testing::Message() << batch_tokens << " tokens, " << ring_slots << " slots");
        HandBuiltOptions options = one_step(batch_tokens);
        options.ring_slots = ring_slots;
        options.evict = evict;
        expect_read_once(options);
      }
}

/// Layers have too few slots for their experts, but the layer at work borrows from the others.
TEST_P(StreamingSchedule, AnExpertIsReadOnceAPromptWhereLayersLend) {
  size_t tried = 0;
  for (const size_t batch_tokens : {1, 4, 13})
    for (uint32_t slots = used_count(); slots < expert_count(); ++slots)
      for (const EvictionKind evict : kEvictions) {
        SCOPED_TRACE(testing::Message() << batch_tokens << " tokens, " << slots << " slots");
        HandBuiltOptions options = one_step(batch_tokens);
        options.slots_per_layer = slots;
        options.evict = evict;
        options.lookahead.emplace(fixed_lookahead(0, 0));
        if (!lending_holds_a_layer(options)) continue;
        ++tried;
        expect_read_once(options);
      }
  EXPECT_TRUE(tried > 0 || GetParam() != kFloats);
  if (tried == 0) GTEST_SKIP() << "layers of different sizes do not lend";
}

TEST_P(StreamingSchedule, GuessesRightAndWrongLeaveNoTrace) {
  GuessStats met;
  uint64_t promoted = 0;
  for (uint64_t seed = 1; seed <= 120 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const FakeFaultShares rough{.short_aligned = 0.1, .interrupted = 0.1, .delayed = 0.2};
    const HandBuiltOptions options =
        draw_options(random, random.below(2) == 0 ? rough : FakeFaultShares{});
    HandBuiltEngine engine(*model_, pool_, options);
    guess_at_random(engine, random);
    const size_t prompt = 1 + random.below(tokens_.size());
    append_and_compare(engine, options.kv, 0, prompt);
    for (size_t i = prompt; i < tokens_.size(); ++i) append_and_compare(engine, options.kv, i, 1);
    expect_clean(engine);
    met += engine.store().stats().all_guesses();
    promoted += engine.store().stats().prefetch_promoted_count;
  }
  for (const uint64_t count : {met.useful_count, met.wasted_count, met.cancelled_count, promoted})
    EXPECT_GT(count, 50u);
}

/// A guess that cannot be read harms nobody; the step fails only by what it needs.
TEST_P(StreamingSchedule, GuessesOverABreakingDrive) {
  size_t failed_steps = 0;
  for (uint64_t seed = 1; seed <= 60 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const HandBuiltOptions options = draw_options(random, {.broken = 0.02, .delayed = 0.1});
    HandBuiltEngine engine(*model_, pool_, options);
    guess_at_random(engine, random);
    for (size_t done = 0; done < tokens_.size() && !HasFailure();) {
      const size_t count = 1 + random.below(std::min<size_t>(6, tokens_.size() - done));
      auto logits = engine.append(std::span(tokens_).subspan(done, count));
      for (int tries = 0; !logits.ok() && tries < 1000; ++tries) {
        ++failed_steps;
        EXPECT_EQ(logits.error().kind, ErrorKind::io) << logits.error().message;
        logits = engine.append(std::span(tokens_).subspan(done, count));
      }
      expect_equal(logits, options.kv, done, count);
      done += count;
    }
    expect_clean(engine);
  }
  EXPECT_GT(failed_steps, 50u);
}

TEST_P(StreamingSchedule, LookaheadForeseesAndLeavesNoTrace) {
  for (const uint32_t ring_slots : {0u, 2 * expert_count()})
    for (uint32_t distance = 0; distance <= 3; ++distance)
      for (const uint32_t runner_ups : {0u, 2u}) {
        SCOPED_TRACE(testing::Message() << "distance " << distance << ", ring " << ring_slots);
        HandBuiltOptions options;
        options.slots_per_layer = used_count() + 1;
        options.ring_slots = ring_slots;
        options.evict = EvictionKind::decay;
        options.lookahead.emplace(fixed_lookahead(distance, used_count(), runner_ups));
        HandBuiltEngine engine(*model_, pool_, options);
        for (size_t i = 0; i < tokens_.size(); ++i) append_and_compare(engine, options.kv, i, 1);
        expect_clean(engine);
        const ExpertStats stats = engine.store().stats();
        for (uint32_t i = 1; i <= distance; ++i)
          EXPECT_EQ(stats.guesses[i].started_count > 0, i < layer_count()) << i;
        for (uint32_t i = distance + 1; i <= kGuessDistanceMax; ++i)
          EXPECT_EQ(stats.guesses[i].started_count, 0u) << i;
        EXPECT_EQ(stats.guesses[0].started_count > 0, runner_ups > 0);
      }
}

TEST_P(StreamingSchedule, SlotsGivenBackAndTakenAgainLeaveNoTrace) {
  for (uint64_t seed = 1; seed <= 60 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const HandBuiltOptions options = draw_options(random, {.delayed = 0.1});
    HandBuiltEngine engine(*model_, pool_, options);
    if (random.below(2) == 0) guess_at_random(engine, random);
    ExpertStore& store = engine.store();
    const uint64_t all = engine.ledger().bytes(MemoryUse::cache);
    for (size_t done = 0; done < tokens_.size() && !HasFailure();) {
      const size_t count = 1 + random.below(std::min<size_t>(8, tokens_.size() - done));
      append_and_compare(engine, options.kv, done, count);
      done += count;
      if (random.below(2) == 0)
        store.give_back(random.below(all));
      else
        store.take_back(random.below(all));
      ASSERT_EQ(engine.ledger().bytes(MemoryUse::cache), all - store.given_back_bytes());
    }
    store.take_back(all);
    EXPECT_EQ(store.given_back_bytes(), 0u);
    expect_clean(engine);
  }
}

/// Stopped or failed while the layer at work borrows, the next token finds its slots.
TEST_P(StreamingSchedule, AStepThatEndsEarlyReturnsWhatItBorrowed) {
  HandBuiltOptions options = one_step(4);
  options.slots_per_layer = used_count();
  options.lookahead.emplace(fixed_lookahead(0, 0));
  HandBuiltEngine engine(*model_, pool_, options);
  append_and_compare(engine, options.kv, 0, 3);
  for (size_t stop_at = 0; stop_at < layer_count(); ++stop_at) {
    size_t pieces = 0;
    engine.routing().on_attention = [&](size_t layer) {
      if (layer == stop_at && ++pieces == 4) engine.stop() = true;
    };
    const auto logits = engine.append(std::span(tokens_).subspan(3));
    ASSERT_FALSE(logits.ok());
    EXPECT_EQ(logits.error().kind, ErrorKind::interrupted);
    engine.stop() = false;
    engine.routing().on_attention = {};
    for (size_t i = 3; i < 8; ++i) append_and_compare(engine, options.kv, i, 1);
    engine.reset();
    append_and_compare(engine, options.kv, 0, 3);
  }
  expect_clean(engine);
}

INSTANTIATE_TEST_SUITE_P(Models, StreamingSchedule, ::testing::Values(kQuantised, kFloats, kShards),
                         model_name);

}  // namespace
}  // namespace sluice
