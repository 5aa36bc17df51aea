// A whole model over a drive that misbehaves: what can be repaired leaves no trace in the output,
// what cannot be is a clean error of that step, and the step may be tried again.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/random.h"
#include "tests/support/hand_built_engine.h"

namespace sluice {
namespace {

const std::string kQuantised = SLUICE_SOURCE_DIR "/tests/data/cases/qwen3moe-q4_k_m/model.gguf";
const std::string kFloats = SLUICE_SOURCE_DIR "/tests/data/cases/qwen3moe/model.gguf";
const std::string kShards =
    SLUICE_SOURCE_DIR "/tests/data/cases/qwen3moe-split3/model-00001-of-00003.gguf";

std::vector<int32_t> some_tokens(size_t count) {
  Random random(11);
  std::vector<int32_t> tokens(count);
  for (int32_t& token : tokens) token = static_cast<int32_t>(random.below(256));
  return tokens;
}

class StreamingFaults : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    for (const KvType kv : {KvType::f16, KvType::f32}) {
      HandBuiltOptions options;
      options.kv = kv;
      HandBuiltEngine engine(*model_, pool_, options);
      auto logits = engine.append(tokens_);
      ASSERT_TRUE(logits.ok()) << logits.error().message;
      expected_[kv] = std::move(*logits);
    }
  }

  uint32_t used_count() const { return model_->config().expert_used_count; }
  uint32_t expert_count() const { return model_->config().expert_count; }
  size_t vocabulary() const { return model_->config().vocabulary_size; }

  /// An engine whose sizes are drawn from the seed.
  HandBuiltOptions draw_options(Random& random, const FakeFaultShares& shares) const {
    HandBuiltOptions options;
    options.drive.seed = random.next();
    options.drive.depth_max = 1 + random.below(16);
    options.drive.alignment = random.below(2) == 0 ? 512 : 4096;
    options.drive.shares = shares;
    options.drive.reorder = random.below(4) != 0;
    options.slots_per_layer =
        used_count() + static_cast<uint32_t>(random.below(expert_count() - used_count() + 1));
    options.batch_tokens = 1 + random.below(tokens_.size());
    options.ubatch_tokens = 1 + random.below(options.batch_tokens);
    options.pairs_per_step = 1 + random.below(100);
    options.kv = random.below(2) == 0 ? KvType::f16 : KvType::f32;
    return options;
  }

  /// What the clean run gave for tokens [first, first + count).
  std::span<const float> expected(KvType kv, size_t first, size_t count) const {
    return std::span(expected_.at(kv)).subspan(first * vocabulary(), count * vocabulary());
  }

  void expect_equal(const Result<std::vector<float>>& logits, KvType kv, size_t first,
                    size_t count) const {
    ASSERT_TRUE(logits.ok()) << logits.error().message;
    ASSERT_TRUE(std::ranges::equal(*logits, expected(kv, first, count)))
        << "tokens from " << first << ", " << count << " of them";
  }

  static void expect_clean(HandBuiltEngine& engine) {
    EXPECT_EQ(engine.drive().misaligned_count(), 0u);
    EXPECT_EQ(engine.drive().touched_count(), 0u);
    EXPECT_EQ(engine.drive().in_flight_count(), 0u);
    const ExpertStats stats = engine.store().stats();
    EXPECT_EQ(stats.lookup_count, stats.hit_count + stats.join_count + stats.miss_count);
  }

  const std::unique_ptr<ModelBytes> model_ = ModelBytes::open(GetParam());
  ComputePool pool_{2};
  const std::vector<int32_t> tokens_ = some_tokens(30);
  std::map<KvType, std::vector<float>> expected_;
};

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
        random, {.short_unaligned = 0.1, .end_of_file = 0.02, .broken = 0.03, .delayed = 0.1});
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
                         [](const auto& test) {
                           if (test.param == kFloats) return "floats";
                           return test.param == kShards ? "shards" : "quantised";
                         });

}  // namespace
}  // namespace sluice
