// Decoding in virtual time: what lookahead, its governor and the reading below reach on drives of
// every kind, and what they never cost. Everything but the clock is real, and the same run happens
// on every machine, so the bounds here are close to what was measured (docs/streaming.md,
// "Simulated").
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "sampling/sampler.h"
#include "testing/fake_drive_kinds.h"
#include "tests/support/simulated_engine.h"

namespace sluice {
namespace {

using Tokens = std::vector<int32_t>;

ComputePool& pool() {
  static ComputePool pool(2);
  return pool;
}

const ModelBytes& demo() {
  static const auto model = ModelBytes::open(SLUICE_SOURCE_DIR "/models/demo-q4_k_m.gguf");
  return *model;
}

/// Text of the model's own.
Tokens written_by_the_model(size_t token_count, uint64_t seed) {
  SimulatedOptions options;
  options.context_tokens = token_count;
  options.lookahead.governor.most = {};
  SimulatedEngine engine(demo(), pool(), options);
  Sampler sampler({.temperature = 0.7f, .seed = seed}, demo().config().vocabulary_size);
  Tokens tokens{static_cast<int32_t>(500 + 97 * seed)};
  while (tokens.size() < token_count) {
    engine.decode(tokens.back());
    tokens.push_back(sampler.sample(engine.logits(), tokens));
  }
  return tokens;
}

struct Text {
  Tokens tokens;
  ModelRecording recording;
};

Text recorded(Tokens tokens) {
  ModelRecording recording = SimulatedEngine::record(demo(), pool(), tokens);
  return {std::move(tokens), std::move(recording)};
}

/// 900 tokens, of which the first 300 warm up the cache and the governor.
constexpr size_t kWarmTokens = 300;
Text& text() {
  static Text text = recorded(written_by_the_model(900, 1));
  return text;
}

/// Fitted to other texts that the model has written.
const Correction& correction() {
  static const Correction correction = [] {
    auto read = Correction::read(SLUICE_SOURCE_DIR "/models/demo-q4_k_m.correction",
                                 correction_identity(demo().config(), demo().weights()));
    CHECK(read.ok());
    return std::move(*read);
  }();
  return correction;
}

struct Times {
  double step_us = 0, stall_us = 0;  ///< of a step, on average

  static Times of(std::span<const SimulatedStep> steps) {
    Times times;
    for (const SimulatedStep& step : steps) {
      times.step_us += static_cast<double>(step.step_ns) / 1e3 / static_cast<double>(steps.size());
      times.stall_us +=
          static_cast<double>(step.stall_ns) / 1e3 / static_cast<double>(steps.size());
    }
    return times;
  }
};

struct Played {
  Times all;
  Times warm;  ///< without the first kWarmTokens
};

SimulatedOptions options_of(const FakeDriveOptions& drive, uint32_t slots) {
  SimulatedOptions options{.drive = drive, .slots_per_layer = slots};
  options.context_tokens = size_t{1} << 20;  // costs nothing: the played model has no attention
  return options;
}

Played play(Text& played, const SimulatedOptions& options) {
  SimulatedEngine engine(demo(), played.recording, options);
  const std::vector<SimulatedStep> steps = engine.decode(played.tokens);
  return {Times::of(steps), Times::of(std::span(steps).subspan(kWarmTokens))};
}

constexpr GovernorOptions kOff = {.most = {}};
constexpr GovernorOptions kGoverned = {.most = {.distance = 2, .width = 4}};
constexpr GovernorOptions fixed_at(uint32_t distance) {
  return {.most = {.distance = distance, .width = 4}, .mode = GovernorMode::fixed};
}

Played play(Text& played, SimulatedOptions options, const GovernorOptions& governor) {
  options.lookahead.governor = governor;
  return play(played, options);
}

double change(double from, double to) {
  return 100 * (to / from - 1);
}

void print(std::string_view drive, uint32_t slots, const Played& off, const Played& on) {
  fmt::print(
      "  {:7} {:2} of 32: step {:6.0f} us {:+5.1f} %, stall {:6.0f} us {:+5.1f} %; warm {:+5.1f} "
      "%, "
      "{:+5.1f} %\n",
      drive, slots, off.all.step_us, change(off.all.step_us, on.all.step_us), off.all.stall_us,
      change(off.all.stall_us, on.all.stall_us), change(off.warm.step_us, on.warm.step_us),
      change(off.warm.stall_us, on.warm.stall_us));
}

TEST(Simulation, LookaheadTakesAwayMoreThanAThirdOfTheStall) {
  for (const uint32_t slots : {20u, 22u, 24u}) {
    SCOPED_TRACE(slots);
    SimulatedOptions options = options_of(fast_drive(), slots);
    options.correction = &correction();
    const Played off = play(text(), options, kOff);
    const Played on = play(text(), options, kGoverned);
    print("fast", slots, off, on);
    EXPECT_LE(on.warm.stall_us, 0.65 * off.warm.stall_us);
    EXPECT_LE(on.all.stall_us, 0.70 * off.all.stall_us) << "while it learns, too";
    EXPECT_LT(on.all.step_us, off.all.step_us);
  }
}

// The drive that answers only when all is read: what joins a demand read delays it.
TEST(Simulation, OnAVirtualDriveNoGuessDelaysADemandRead) {
  const SimulatedOptions options = options_of(virtual_drive(), 16);
  const Played off = play(text(), options, kOff);
  const Played on = play(text(), options, kGoverned);
  print("virtual", 16, off, on);
  EXPECT_LE(on.warm.step_us, 0.95 * off.warm.step_us);
}

TEST(Simulation, ACorrectionIsWorthItsWhile) {
  SimulatedOptions options = options_of(fast_drive(), 22);
  const Played without = play(text(), options, kGoverned);
  options.correction = &correction();
  EXPECT_LE(play(text(), options, kGoverned).warm.stall_us, 0.95 * without.warm.stall_us);
}

class SimulationOnDrives : public testing::TestWithParam<FakeDriveKind> {};
INSTANTIATE_TEST_SUITE_P(Drives, SimulationOnDrives, testing::ValuesIn(fake_drive_kinds()),
                         [](const auto& drive) { return std::string(drive.param.name); });

TEST_P(SimulationOnDrives, TheGovernorCostsNextToNothingAndWinsWhereThereIsSomething) {
  for (const uint32_t slots : {8u, 16u, 24u, 28u, 32u}) {
    SCOPED_TRACE(slots);
    const SimulatedOptions options = options_of(GetParam().options, slots);
    const Played off = play(text(), options, kOff);
    const Played on = play(text(), options, kGoverned);
    print(GetParam().name, slots, off, on);
    EXPECT_LE(on.all.step_us, 1.02 * off.all.step_us);
    double best_us = off.warm.step_us;
    for (const uint32_t distance : {1u, 2u})
      best_us = std::min(best_us, play(text(), options, fixed_at(distance)).warm.step_us);
    const double best_gain_us = off.warm.step_us - best_us;
    if (best_gain_us < 0.05 * off.warm.step_us) continue;
    EXPECT_GE(off.warm.step_us - on.warm.step_us, 0.8 * best_gain_us);
  }
}

/// The sums that expert_stats.h and lookahead_stats.h state.
void expect_sums(SimulatedEngine& engine) {
  const ExpertStats experts = engine.store().stats();
  EXPECT_EQ(experts.lookup_count, experts.hit_count + experts.join_count + experts.miss_count);
  EXPECT_EQ(experts.demand_read_count, 3 * experts.miss_count) << "gate, up and down";
  EXPECT_LE(experts.prefetch_useful_bytes, experts.prefetch_bytes);
  for (const GuessStats& of_distance : experts.guesses)
    EXPECT_GE(of_distance.started_count,
              of_distance.useful_count + of_distance.wasted_count + of_distance.cancelled_count);
  for (uint32_t distance = 0; distance <= kDistanceMax; ++distance) {
    const LookaheadCounts& counts = engine.lookahead().stats().at(distance);
    EXPECT_EQ(counts.pick_count, counts.foreseen_count + counts.overlooked_count);
    EXPECT_EQ(counts.miss_count, counts.miss_foreseen_count + counts.miss_overlooked_count);
    EXPECT_LE(counts.miss_foreseen_count, counts.foreseen_count);
    EXPECT_LE(counts.miss_count, counts.pick_count);
    if (distance == 0) continue;
    EXPECT_EQ(counts.predicted_count, counts.foreseen_count + counts.mistaken_count)
        << "all layers are routed when a step ends";
  }
}

TEST(Simulation, TheStatedSumsHoldAfterEveryStep) {
  for (const PoolKind pool_kind : {PoolKind::layer, PoolKind::ring}) {
    for (const FakeDriveKind& kind : fake_drive_kinds()) {
      SimulatedOptions options = options_of(kind.options, 10);
      options.pool = pool_kind;
      options.lookahead.governor = fixed_at(3);
      options.lookahead.runner_up_count = 2;
      options.correction = &correction();
      SimulatedEngine engine(demo(), text().recording, options);
      for (size_t i = 0; i < 100 && !HasFailure(); ++i) {
        engine.decode(text().tokens[i]);
        expect_sums(engine);
      }
      engine.store().forget_all();
      for (const GuessStats& guesses : engine.store().stats().guesses) {
        EXPECT_GT(guesses.started_count, 0u);
        EXPECT_EQ(guesses.started_count,
                  guesses.useful_count + guesses.wasted_count + guesses.cancelled_count);
      }
    }
  }
}

/// All logits of a prompt and some decoded tokens, really computed.
std::vector<float> computed_logits(const SimulatedOptions& options) {
  SimulatedEngine engine(demo(), pool(), options);
  std::vector<float> all;
  engine.prefill(std::span(text().tokens).first(12));
  for (size_t i = 12; i < 40; ++i) {
    engine.decode(text().tokens[i]);
    all.insert(all.end(), engine.logits().begin(), engine.logits().end());
  }
  return all;
}

TEST(Simulation, NoSettingChangesABitOfTheOutput) {
  const std::vector<float> expected = computed_logits({.lookahead = {.governor = kOff}});
  for (const PoolKind pool_kind : {PoolKind::layer, PoolKind::ring}) {
    for (const EvictionKind evict : {EvictionKind::decay, EvictionKind::lru}) {
      for (uint32_t distance = 0; distance <= kDistanceMax; ++distance) {
        SimulatedOptions options{.drive = distance % 2 == 0 ? fast_drive() : shallow_drive(),
                                 .pool = pool_kind,
                                 .evict = evict,
                                 .slots_per_layer = 6};
        options.drive.reorder = true;
        options.lookahead.governor = fixed_at(distance);
        options.lookahead.runner_up_count = distance < 2 ? 4 : 0;
        options.correction = distance == 3 ? &correction() : nullptr;
        EXPECT_TRUE(computed_logits(options) == expected) << "at distance " << distance;
      }
    }
  }
}

TEST(Simulation, APlayedModelTakesTheSameTimeAsAComputedOne) {
  SimulatedOptions options = options_of(fast_drive(), 12);
  options.context_tokens = 256;
  options.lookahead.runner_up_count = 2;
  options.correction = &correction();
  SimulatedEngine computed(demo(), pool(), options), played(demo(), text().recording, options);
  for (size_t i = 0; i < 100; ++i) {
    const SimulatedStep a = computed.decode(text().tokens[i]), b = played.decode(text().tokens[i]);
    ASSERT_EQ(a.step_ns, b.step_ns) << "token " << i;
    ASSERT_EQ(a.stall_ns, b.stall_ns);
    ASSERT_EQ(a.reach, b.reach);
  }
}

TEST(Simulation, AChangeOfTopicIsSoonForgotten) {
  Tokens tokens = written_by_the_model(500, 2);
  const Tokens other = written_by_the_model(500, 3);
  tokens.insert(tokens.end(), other.begin(), other.end());
  Text both = recorded(tokens);
  SimulatedOptions options = options_of(fast_drive(), 20);
  SimulatedEngine engine(demo(), both.recording, options);
  const std::vector<SimulatedStep> steps = engine.decode(both.tokens);
  const std::span<const SimulatedStep> all(steps);
  options.lookahead.governor = kOff;
  SimulatedEngine off(demo(), both.recording, options);
  const std::vector<SimulatedStep> off_steps = off.decode(both.tokens);
  const auto off_all = std::span(off_steps);
  // The texts differ in what they want anyhow; that is what the run without lookahead shows.
  const double before =
      Times::of(all.subspan(372, 128)).stall_us / Times::of(off_all.subspan(372, 128)).stall_us;
  const double at_once =
      Times::of(all.subspan(500, 32)).stall_us / Times::of(off_all.subspan(500, 32)).stall_us;
  fmt::print("  stall, of that without lookahead: {:.2f} before the change, {:.2f} after it\n",
             before, at_once);
  EXPECT_LE(at_once, before + 0.1);
  EXPECT_LE(Times::of(all.subspan(500)).step_us, Times::of(off_all.subspan(500)).step_us);
}

TEST(Simulation, TheFirstTokensAfterALongPromptAreAsFastAsLaterOnes) {
  constexpr size_t kPromptTokens = 1024, kFirst = 32;
  Text longer = recorded(written_by_the_model(kPromptTokens + 200, 4));
  for (const uint32_t slots : {8u, 16u, 24u}) {
    SimulatedOptions options = options_of(fast_drive(), slots);
    options.step_tokens = kPromptTokens;
    SimulatedEngine engine(demo(), longer.recording, options);
    engine.prefill(std::span(longer.tokens).first(kPromptTokens));
    const auto steps = engine.decode(std::span(longer.tokens).subspan(kPromptTokens));
    const Times first = Times::of(std::span(steps).first(kFirst));
    const Times later = Times::of(std::span(steps).subspan(kFirst));
    fmt::print("  {:2} of 32: stall {:5.0f} us in the first {} tokens, {:5.0f} later\n", slots,
               first.stall_us, kFirst, later.stall_us);
    EXPECT_LE(first.stall_us, 1.3 * later.stall_us);
  }
}

}  // namespace
}  // namespace sluice
