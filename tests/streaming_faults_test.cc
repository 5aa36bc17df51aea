// A whole model over a drive that misbehaves: what can be repaired leaves no trace in the output,
// what cannot be is a clean error of that step, and the step may be tried again.
#include <gtest/gtest.h>

#include <set>

#include "tests/support/streamed_model.h"

namespace sluice {
namespace {

class StreamingFaults : public StreamedModel {};

TEST_P(StreamingFaults, WhatCanBeRepairedLeavesNoTrace) {
  for (uint64_t seed = 1; seed <= 400 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const HandBuiltOptions options = draw_options(random, {.short_aligned = 0.15,
                                                           .short_unaligned = 0.15,
                                                           .interrupted = 0.1,
                                                           .busy = 0.1,
                                                           .delayed = 0.2});
    HandBuiltEngine engine(*model_, pool_, options);
    const size_t prompt = 1 + random.below(tokens_.size());
    expect_equal(engine.append(std::span(tokens_).first(prompt)), options.kv, 0, prompt);
    for (size_t i = prompt; i < tokens_.size(); ++i)
      expect_equal(engine.append({&tokens_[i], 1}), options.kv, i, 1);
    expect_clean(engine);
  }
}

TEST_P(StreamingFaults, AFailedStepMayBeTriedAgain) {
  size_t failed_steps = 0;
  for (uint64_t seed = 1; seed <= 150 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const HandBuiltOptions options = draw_options(
        random, {.short_unaligned = 0.1, .end_of_file = 0.005, .broken = 0.01, .delayed = 0.1});
    HandBuiltEngine engine(*model_, pool_, options);
    for (size_t done = 0; done < tokens_.size() && !HasFailure();) {
      const size_t count = 1 + random.below(std::min<size_t>(6, tokens_.size() - done));
      auto logits = engine.append(std::span(tokens_).subspan(done, count));
      for (int tries = 0; !logits.ok() && tries < 1000; ++tries) {
        ++failed_steps;
        EXPECT_EQ(logits.error().kind, ErrorKind::io);
        EXPECT_EQ(engine.position(), done);
        EXPECT_EQ(engine.drive().in_flight_count(), 0u) << "nobody writes into our memory now";
        logits = engine.append(std::span(tokens_).subspan(done, count));
      }
      expect_equal(logits, options.kv, done, count);
      done += count;
    }
    expect_clean(engine);
  }
  EXPECT_GT(failed_steps, 100u) << "the test has met what it is about";
}

/// Every single read of a prompt breaks once.
TEST_P(StreamingFaults, EveryReadMayBreak) {
  HandBuiltOptions options;
  options.slots_per_layer = used_count();
  HandBuiltEngine healthy(*model_, pool_, options);
  ASSERT_TRUE(healthy.append(tokens_).ok());
  const uint64_t read_count = healthy.drive().log().size();
  ASSERT_GT(read_count, expert_count());
  for (uint64_t number = 0; number < read_count && !HasFailure(); ++number) {
    SCOPED_TRACE(number);
    options.drive.planned = {{number, FakeFault::broken}};
    HandBuiltEngine engine(*model_, pool_, options);
    const auto logits = engine.append(tokens_);
    ASSERT_FALSE(logits.ok());
    EXPECT_EQ(logits.error().kind, ErrorKind::io);
    EXPECT_NE(logits.error().message.find(".gguf: reading "), std::string::npos);
    EXPECT_NE(logits.error().message.find("Input/output error"), std::string::npos);
    expect_equal(engine.append(tokens_), options.kv, 0, tokens_.size());
    expect_clean(engine);
  }
}

TEST_P(StreamingFaults, AFileCutShortIsSaidSo) {
  HandBuiltOptions options;
  options.slots_per_layer = used_count();
  HandBuiltEngine engine(*model_, pool_, options);
  ASSERT_TRUE(engine.append(std::span(tokens_).first(2)).ok());
  for (uint32_t file = 0; file < model_->files().size(); ++file)
    engine.drive().cut_file(file, model_->files()[file].size() / 5);
  Result<std::vector<float>> logits = engine.append(std::span(tokens_).subspan(2));
  ASSERT_FALSE(logits.ok());
  EXPECT_EQ(logits.error().kind, ErrorKind::io);
  EXPECT_NE(logits.error().message.find("cut short while in use"), std::string::npos)
      << logits.error().message;
  for (uint32_t file = 0; file < model_->files().size(); ++file)
    engine.drive().cut_file(file, model_->files()[file].size());
  expect_equal(engine.append(std::span(tokens_).subspan(2)), options.kv, 2, tokens_.size() - 2);
  expect_clean(engine);
}

/// However few the slots: a batch reads each expert it needs once, and none that it has.
TEST_P(StreamingFaults, EachExpertIsReadAtMostOnceInABatch) {
  for (uint32_t slots = used_count(); slots <= expert_count(); ++slots) {
    SCOPED_TRACE(slots);
    HandBuiltOptions options;
    options.slots_per_layer = slots;
    options.drive.reorder = true;
    HandBuiltEngine engine(*model_, pool_, options);
    size_t read_before = 0, more_than_slots = 0;
    for (size_t first = 0; first < tokens_.size(); first += 15) {
      std::vector<std::set<uint32_t>> resident(model_->config().layer_count());
      for (uint32_t layer = 0; layer < resident.size(); ++layer)
        for (uint32_t expert = 0; expert < expert_count(); ++expert)
          if (engine.store().is_resident({layer, expert})) resident[layer].insert(expert);
      engine.routing().clear();
      ASSERT_TRUE(engine.append(std::span(tokens_).subspan(first, 15)).ok());
      size_t expected_reads = 0;
      for (uint32_t layer = 0; layer < resident.size(); ++layer) {
        std::set<uint32_t> needed;
        for (const auto& token : engine.routing().chosen()[layer])
          needed.insert(token.begin(), token.end());
        more_than_slots += needed.size() > slots ? 1 : 0;
        for (const uint32_t expert : needed)
          if (!resident[layer].contains(expert))
            expected_reads += model_->weights().experts[layer].parts().size();
      }
      std::set<std::pair<uint32_t, uint64_t>> places;
      const auto& log = engine.drive().log();
      for (size_t i = read_before; i < log.size(); ++i)
        places.emplace(log[i].op.file, log[i].op.offset);
      EXPECT_EQ(log.size() - read_before, expected_reads);
      EXPECT_EQ(places.size(), expected_reads);
      read_before = log.size();
    }
    if (slots == used_count()) {
      EXPECT_GT(more_than_slots, 0u) << "layers went in waves";
    }
    if (slots == expert_count()) {
      EXPECT_EQ(more_than_slots, 0u);
    }
  }
}

TEST_P(StreamingFaults, AStoppedStepMayBeTakenUpAgain) {
  HandBuiltOptions options;
  options.slots_per_layer = used_count();
  HandBuiltEngine engine(*model_, pool_, options);
  ASSERT_TRUE(engine.append(std::span(tokens_).first(10)).ok());
  engine.stop() = true;
  const auto logits = engine.append(std::span(tokens_).subspan(10));
  ASSERT_FALSE(logits.ok());
  EXPECT_EQ(logits.error().kind, ErrorKind::interrupted);
  EXPECT_EQ(engine.drive().in_flight_count(), 0u);
  engine.stop() = false;
  expect_equal(engine.append(std::span(tokens_).subspan(10)), options.kv, 10, tokens_.size() - 10);
  expect_clean(engine);
}

INSTANTIATE_TEST_SUITE_P(Models, StreamingFaults, ::testing::Values(kQuantised, kFloats, kShards),
                         model_name);

}  // namespace
}  // namespace sluice
