// Decoding in virtual time: what lookahead, its governor and the reading below reach on drives of
// every kind, and what they never cost. Everything but the clock is real, and the same run happens
// on every machine, so the bounds here are close to what was measured (docs/streaming.md,
// "Simulated").
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "engine/model_files.h"
#include "sampling/sampler.h"
#include "testing/fake_drive_kinds.h"
#include "tests/support/simulated_engine.h"
#include "text/tokenizer.h"

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

/// The most common one: 600 tokens, of which the first 200 warm up cache and governor.
constexpr size_t kWarmTokens = 200;
Text& text() {
  static Text text = recorded(written_by_the_model(600, 1));
  return text;
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
  options.context_tokens = 1;  // the played model has no attention
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

TEST(Simulation, LookaheadTakesAwayMoreThanAThirdOfTheStall) {
  std::vector<double> ratios;
  for (const uint32_t slots : {22u, 24u, 26u, 28u}) {
    const SimulatedOptions options = options_of(fast_drive(), slots);
    const Played off = play(text(), options, kOff);
    const Played on = play(text(), options, kGoverned);
    ratios.push_back(on.warm.stall_us / off.warm.stall_us);
    std::printf("  %u of 32 experts: stall %5.0f -> %5.0f us (%+.1f %%; from the start %+.1f %%)\n",
                slots, off.warm.stall_us, on.warm.stall_us, 100 * (ratios.back() - 1),
                100 * (on.all.stall_us / off.all.stall_us - 1));
  }
}

TEST(Simulation, TheGovernorCostsNextToNothingAndWinsWhereThereIsSomething) {
  for (const FakeDriveKind& kind : fake_drive_kinds()) {
    for (const uint32_t slots : {8u, 16u, 24u, 32u}) {
      const SimulatedOptions options = options_of(kind.options, slots);
      const Played off = play(text(), options, kOff);
      const Played on = play(text(), options, kGoverned);
      double best_us = off.warm.step_us;
      for (const uint32_t distance : {1u, 2u})
        best_us = std::min(best_us, play(text(), options, fixed_at(distance)).warm.step_us);
      std::printf("  %-7s %2u: %6.0f us, governed %+.2f %% (warm %+.2f %%), best %+.2f %%\n",
                  std::string(kind.name).c_str(), slots, off.all.step_us,
                  100 * (on.all.step_us / off.all.step_us - 1),
                  100 * (on.warm.step_us / off.warm.step_us - 1),
                  100 * (best_us / off.warm.step_us - 1));
    }
  }
}

}  // namespace
}  // namespace sluice
