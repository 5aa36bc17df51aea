// Prints the tables of docs/streaming.md, "Simulated": a text played on each kind of drive and with
// several sizes of the expert cache, without lookahead, with it under the governor, and at fixed
// distances.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "engine/model_files.h"
#include "os/small_file.h"
#include "testing/fake_drive_kinds.h"
#include "tests/support/must.h"
#include "tests/support/simulated_engine.h"
#include "text/tokenizer.h"

namespace sluice {
namespace {

constexpr size_t kTokens = 1000;
constexpr size_t kWarmTokens = 300;

/// A played run: the step's and its stall's time without the first kWarmTokens, and what became of
/// guesses, for each token.
struct Outcome {
  double step_us = 0, stall_us = 0, miss_count = 0, useful_count = 0, unused_count = 0;
};

class Simulation {
 public:
  Simulation(const std::string& model_path, const std::string& text_path)
      : model_(ModelBytes::open(model_path)) {
    const auto tokenizer = must(text::Tokenizer::make(must(read_vocabulary(model_->header()))));
    tokens_ = tokenizer->tokenize(must(os::read_text_file(text_path, uint64_t{1} << 30)), {});
    tokens_.resize(std::min(tokens_.size(), kTokens));
    CHECK(tokens_.size() > kWarmTokens);
    ComputePool pool(2);
    recording_.emplace(SimulatedEngine::record(*model_, pool, tokens_));
  }

  void correct(const std::string& path) {
    const auto model = correction_identity(model_->config(), model_->weights());
    correction_ = must(Correction::read(path, model));
  }

  Outcome play(const FakeDriveOptions& drive, uint32_t slots, const GovernorOptions& governor) {
    SimulatedOptions options{.drive = drive, .slots_per_layer = slots};
    options.correction = correction_ ? &*correction_ : nullptr;
    options.context_tokens = size_t{1} << 20;  // costs nothing: the played model has no attention
    options.lookahead.governor = governor;
    SimulatedEngine engine(*model_, *recording_, options);
    const auto steps = engine.decode(tokens_);
    Outcome outcome;
    const double warm_count = static_cast<double>(steps.size() - kWarmTokens);
    for (size_t i = kWarmTokens; i < steps.size(); ++i) {
      outcome.step_us += static_cast<double>(steps[i].step_ns) / 1e3 / warm_count;
      outcome.stall_us += static_cast<double>(steps[i].stall_ns) / 1e3 / warm_count;
    }
    const ExpertStats experts = engine.store().stats();
    const GuessStats guesses = experts.all_guesses();
    const double count = static_cast<double>(steps.size());
    outcome.miss_count = static_cast<double>(experts.miss_count) / count;
    outcome.useful_count = static_cast<double>(guesses.useful_count) / count;
    outcome.unused_count = static_cast<double>(guesses.unused_count()) / count;
    return outcome;
  }

 private:
  std::unique_ptr<ModelBytes> model_;
  std::vector<text::TokenId> tokens_;
  std::optional<ModelRecording> recording_;
  std::optional<Correction> correction_;
};

void print(std::string_view how, const Outcome& off, const Outcome& on) {
  fmt::print(" {} | {:.0f} | {:+.1f} % | {:.0f} | {:+.1f} % | {:.1f} | {:.1f} | {:.1f} |\n", how,
             on.step_us, 100 * (on.step_us / off.step_us - 1), on.stall_us,
             100 * (on.stall_us / off.stall_us - 1), on.miss_count, on.useful_count,
             on.unused_count);
}

void print_table(Simulation& simulation) {
  fmt::print(
      "| drive | slots | lookahead | step us | | stall us | | misses | useful | not used |\n"
      "|---|---:|---|---:|---:|---:|---:|---:|---:|---:|\n");
  std::vector<FakeDriveKind> kinds = fake_drive_kinds();
  kinds.push_back({"virtual", virtual_drive()});
  for (const FakeDriveKind& kind : kinds) {
    for (const uint32_t slots : {8u, 16u, 20u, 24u, 28u, 32u}) {
      const auto row = [&](std::string_view how, const Outcome& off,
                           const GovernorOptions& governor) {
        fmt::print("| {} | {} |", kind.name, slots);
        print(how, off, simulation.play(kind.options, slots, governor));
      };
      const Outcome off = simulation.play(kind.options, slots, {.most = {}});
      row("off", off, {.most = {}});
      row("governed", off, {.most = {2, 4}});
      for (const uint32_t distance : {1u, 2u})
        row(fmt::format("distance {}", distance), off,
            {.most = {distance, 4}, .mode = GovernorMode::fixed});
    }
  }
}

}  // namespace
}  // namespace sluice

int main(int argument_count, char** arguments) {
  if (argument_count != 3 && argument_count != 4) {
    fmt::print(stderr, "usage: simulate MODEL TEXT [CORRECTION]\n");
    return 2;
  }
  sluice::Simulation simulation(arguments[1], arguments[2]);
  if (argument_count == 4) simulation.correct(arguments[3]);
  sluice::print_table(simulation);
  return 0;
}
