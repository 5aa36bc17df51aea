// Prints what docs/streaming.md says of simulated drives. Usage: simulate MODEL TEXT [TOKENS]
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "engine/model_files.h"
#include "os/small_file.h"
#include "testing/fake_drive_kinds.h"
#include "tests/support/simulated_engine.h"
#include "text/tokenizer.h"

namespace sluice {
namespace {

template <typename T>
T must(Result<T> result) {
  CHECK(result.ok());
  return std::move(*result);
}

struct Run {
  double step_us = 0, stall_us = 0, misses = 0;
  double late_stall_us = 0;
  ExpertStats experts;
  LookaheadCounts counts;
  double idle = 0;
  Reach last;
  uint64_t visits = 0;
  double read_mb = 0;
};

Run run(const ModelBytes& model, ModelRecording& recording, const std::vector<int32_t>& tokens,
        const SimulatedOptions& options) {
  SimulatedEngine engine(model, recording, options);
  const auto steps = engine.decode(tokens);
  Run result;
  for (size_t i = 0; i < steps.size(); ++i) {
    result.step_us += double(steps[i].step_ns) / 1e3 / double(steps.size());
    result.stall_us += double(steps[i].stall_ns) / 1e3 / double(steps.size());
    result.misses += double(steps[i].miss_count) / double(steps.size());
    if (i >= steps.size() / 2)
      result.late_stall_us += double(steps[i].stall_ns) / 1e3 / double(steps.size() / 2);
  }
  result.experts = engine.store().stats();
  result.counts = engine.lookahead().stats().total();
  result.idle = double(engine.drive().idle_ns()) / double(engine.drive().now_ns());
  result.last = steps.back().reach;
  return result;
}

SimulatedOptions with(const FakeDriveOptions& drive, uint32_t slots, uint32_t distance,
                      uint32_t width, GovernorMode mode,
                      const Correction* correction = nullptr) {
  SimulatedOptions options{.drive = drive};
  options.slots_per_layer = slots;
  options.context_tokens = 1;
  options.correction = correction;
  if (const char* cap = std::getenv("CAP")) options.queue.prefetch_in_service_max = std::atoi(cap);
  if (const char* cap = std::getenv("CAPD"))
    options.queue.prefetch_in_service_beside_demand_max = std::atoi(cap);
  options.lookahead.governor = {.most = {.distance = distance, .width = width}, .mode = mode};
  return options;
}

void print(const char* name, uint32_t slots, const char* how, const Run& r, const Run& off) {
  const GuessStats g = r.experts.all_guesses();
  const double n = double(r.experts.lookup_count) / 32;
  fmt::print(
      "{:5} {:2} {:8} step {:6.0f} ({:+5.1f}%) stall {:6.0f} ({:+5.1f}% late {:+5.1f}%) mis"
      "{:4.1f} join{:4.1f} gues{:4.1f} use{:4.1f} prom{:4.1f} wast{:4.1f} canc"
      "{:4.1f} idle {:2.0f}% cov {:.2f} {}/{}\n",
      name, slots, how, r.step_us, 100 * (r.step_us / off.step_us - 1), r.stall_us,
      100 * (r.stall_us / off.stall_us - 1), 100 * (r.late_stall_us / off.late_stall_us - 1),
      r.misses, double(r.experts.join_count) / n, double(g.started_count) / n,
      double(g.useful_count) / n, double(r.experts.prefetch_promoted_count) / n,
      double(g.wasted_count) / n, double(g.cancelled_count) / n, 100 * r.idle,
      r.counts.miss_coverage(), r.last.distance, r.last.width);
}

void simulate(const std::string& model_path, const std::string& text_path, size_t token_max) {
  const auto model = ModelBytes::open(model_path);
  const auto tokenizer = must(text::Tokenizer::make(must(read_vocabulary(model->header()))));
  const std::string text = must(os::read_text_file(text_path, uint64_t{1} << 30));
  std::vector<text::TokenId> tokens = tokenizer->tokenize(text.substr(0, token_max * 6), {});
  tokens.resize(std::min(tokens.size(), token_max));
  ComputePool pool(2);
  ModelRecording recording = SimulatedEngine::record(*model, pool, tokens);
  fmt::print("{} tokens\n", tokens.size());
  std::optional<Correction> correction;
  if (const char* file = std::getenv("CORRECTION"))
    correction = must(Correction::read(file, correction_identity(model->config(), model->weights())));
  const std::string only = std::getenv("DRIVE") ? std::getenv("DRIVE") : "";
  for (const FakeDriveKind& kind : fake_drive_kinds()) {
    if (!only.empty() && only != kind.name) continue;
    for (const uint32_t slots : {12u, 16u, 20u, 24u, 28u}) {
      const auto go = [&](uint32_t distance, uint32_t width, GovernorMode mode) {
        return run(*model, recording, tokens, with(kind.options, slots, distance, width, mode, correction ? &*correction : nullptr));
      };
      const Run off = go(0, 0, GovernorMode::adaptive);
      print(kind.name.data(), slots, "off", off, off);
      print(kind.name.data(), slots, "governor", go(2, 4, GovernorMode::adaptive), off);
      for (const auto& [d, w] : std::vector<std::pair<uint32_t, uint32_t>>{
               {1, 2}, {1, 3}, {1, 4}, {1, 5}, {1, 6}, {1, 8}, {2, 4}, {2, 6}})
        print(kind.name.data(), slots, fmt::format("{}/{}", d, w).c_str(),
              go(d, w, GovernorMode::fixed), off);
    }
  }
}

}  // namespace
}  // namespace sluice

int main(int argument_count, char** arguments) {
  if (argument_count < 3) return 2;
  sluice::simulate(arguments[1], arguments[2],
                   argument_count > 3 ? std::strtoul(arguments[3], nullptr, 10) : 400);
  return 0;
}
