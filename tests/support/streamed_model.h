// A whole model over a fake drive, for tests of what streaming may never change: what a clean run
// gives, and engines whose sizes and settings are drawn from a seed. One thread at a time.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "tests/support/hand_built_engine.h"

namespace sluice {

inline const std::string kQuantised =
    SLUICE_SOURCE_DIR "/tests/data/cases/qwen3moe-q4_k_m/model.gguf";
inline const std::string kFloats = SLUICE_SOURCE_DIR "/tests/data/cases/qwen3moe/model.gguf";
inline const std::string kShards =
    SLUICE_SOURCE_DIR "/tests/data/cases/qwen3moe-split3/model-00001-of-00003.gguf";

inline std::vector<int32_t> some_tokens(size_t count) {
  Random random(11);
  std::vector<int32_t> tokens(count);
  for (int32_t& token : tokens) token = static_cast<int32_t>(random.below(256));
  return tokens;
}

inline constexpr std::array kEvictions{EvictionKind::lru, EvictionKind::decay,
                                       EvictionKind::contest};

/// Lookahead that always looks as far as it may, whatever it costs.
inline Lookahead::Options fixed_lookahead(uint32_t distance, uint32_t width,
                                          uint32_t runner_up_count = 0) {
  Lookahead::Options options;
  options.governor = {.most = {.distance = distance, .width = width}, .mode = GovernorMode::fixed};
  options.runner_up_count = runner_up_count;
  return options;
}

class StreamedModel : public ::testing::TestWithParam<std::string> {
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
  size_t layer_count() const { return model_->config().layer_count(); }
  size_t vocabulary() const { return model_->config().vocabulary_size; }

  /// An engine whose sizes and settings are drawn from the seed.
  HandBuiltOptions draw_options(Random& random, const FakeFaultShares& shares) const {
    HandBuiltOptions options;
    options.drive.seed = random.next();
    options.drive.depth_max = 1 + random.below(16);
    options.drive.alignment = random.below(2) == 0 ? 512 : 4096;
    options.drive.shares = shares;
    options.drive.reorder = random.below(4) != 0;
    options.slots_per_layer =
        used_count() + static_cast<uint32_t>(random.below(expert_count() - used_count() + 1));
    if (random.below(3) == 0)
      options.ring_slots = used_count() + static_cast<uint32_t>(random.below(3 * expert_count()));
    options.evict = kEvictions[random.below(kEvictions.size())];
    options.half_life_tokens = random.below(2) == 0 ? 1 : 64;
    options.batch_tokens = 1 + random.below(tokens_.size());
    options.step_tokens = options.batch_tokens + random.below(tokens_.size());
    options.ubatch_tokens = 1 + random.below(options.batch_tokens);
    options.pairs_per_step = 1 + random.below(100);
    options.kv = random.below(2) == 0 ? KvType::f16 : KvType::f32;
    if (random.below(2) == 0) {
      const auto distance = static_cast<uint32_t>(random.below(4));
      const auto width = static_cast<uint32_t>(random.below(expert_count()));
      options.lookahead.emplace(
          fixed_lookahead(distance, width, static_cast<uint32_t>(random.below(4))));
    }
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
  /// Appends tokens [first, first + count) and compares.
  void append_and_compare(HandBuiltEngine& engine, KvType kv, size_t first, size_t count) const {
    expect_equal(engine.append(std::span(tokens_).subspan(first, count)), kv, first, count);
  }

  /// Nobody wrote where he should not have, and the counters add up.
  void expect_clean(HandBuiltEngine& engine) const {
    engine.settle();
    EXPECT_EQ(engine.drive().misaligned_count(), 0u);
    EXPECT_EQ(engine.drive().touched_count(), 0u);
    EXPECT_EQ(engine.drive().in_flight_count(), 0u);
    const ExpertStats stats = engine.store().stats();
    EXPECT_EQ(stats.lookup_count, stats.hit_count + stats.join_count + stats.miss_count);
    uint64_t guessed = 0;
    for (uint32_t layer = 0; layer < layer_count(); ++layer)
      for (uint32_t index = 0; index < expert_count(); ++index)
        guessed += engine.store().whereabouts({layer, index}) == Whereabouts::guessed;
    const GuessStats guesses = stats.all_guesses();
    EXPECT_EQ(guesses.started_count,
              guesses.useful_count + guesses.wasted_count + guesses.cancelled_count + guessed);
  }

  /// Reads that a clean drive is asked for while these tokens pass as one step, if no expert is
  /// read twice and none that is here.
  uint64_t reads_at_most_once(HandBuiltEngine& engine, size_t first, size_t count) const {
    std::vector<std::vector<bool>> is_here(layer_count());
    for (uint32_t layer = 0; layer < layer_count(); ++layer)
      for (uint32_t expert = 0; expert < expert_count(); ++expert)
        is_here[layer].push_back(engine.store().is_resident({layer, expert}));
    engine.routing().clear();
    EXPECT_TRUE(engine.append(std::span(tokens_).subspan(first, count)).ok());
    uint64_t reads = 0;
    for (uint32_t layer = 0; layer < layer_count(); ++layer)
      for (const auto& token : engine.routing().chosen()[layer])
        for (const int32_t expert : token) {
          if (is_here[layer][static_cast<size_t>(expert)]) continue;
          is_here[layer][static_cast<size_t>(expert)] = true;
          reads += model_->weights().experts[layer].parts().size();
        }
    return reads;
  }

  const std::unique_ptr<ModelBytes> model_ = ModelBytes::open(GetParam());
  ComputePool pool_{2};
  const std::vector<int32_t> tokens_ = some_tokens(30);
  std::map<KvType, std::vector<float>> expected_;
};

/// For the names of tests.
inline std::string model_name(const ::testing::TestParamInfo<std::string>& test) {
  if (test.param == kFloats) return "floats";
  return test.param == kShards ? "shards" : "quantised";
}

}  // namespace sluice
