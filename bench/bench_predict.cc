// What lookahead costs: routers asked early beside the router itself, at the sizes of a 30B model
// (hidden size 2048, 128 experts, routers in F32), on 2 threads. Between two calls the caches are
// as a layer's experts leave them (cold) or as the last call did (warm).
#include <benchmark/benchmark.h>

#include "backend/cpu/cpu_backend.h"
#include "base/random.h"
#include "lookahead/correction.h"
#include "lookahead/predictor.h"
#include "testing/correction_bytes.h"

namespace sluice {
namespace {

constexpr uint32_t kHidden = 2048;
constexpr uint32_t kExperts = 128;
constexpr uint32_t kUsed = 8;
constexpr uint32_t kLayers = 48;

std::vector<float> random_floats(size_t count, uint64_t seed) {
  Random random(seed);
  std::vector<float> floats(count);
  for (float& value : floats) value = static_cast<float>(random.uniform() - 0.5);
  return floats;
}

struct Model {
  Model() : routers(random_floats(size_t{kLayers} * kExperts * kHidden, 1)) {
    config.hidden_size = kHidden;
    config.expert_count = kExperts;
    config.expert_used_count = kUsed;
    config.ropes.resize(1, {.rotated_dim = 128});
    config.layers.resize(kLayers,
                         {.head_count = 16, .kv_head_count = 4, .key_dim = 128, .value_dim = 128});
    config.vocabulary_size = 32;
    const Matrix norm_row{Dtype::f32, 1, kHidden, kHidden * sizeof(float), bytes(norm.data())};
    const Matrix square{Dtype::f32, kHidden, kHidden, kHidden * sizeof(float), nullptr};
    for (size_t layer = 0; layer < kLayers; ++layer) {
      LayerWeights weights;
      weights.ffn_norm = norm_row;
      AttentionWeights& attention = weights.attention;
      attention.query.weight = attention.key.weight = attention.value.weight = square;
      attention.output.weight = square;
      weights.router = {Dtype::f32, kExperts, kHidden, kHidden * sizeof(float),
                        bytes(routers.data() + layer * kExperts * kHidden)};
      map.dense.layers.push_back(weights);
      ExpertPart parts[2];
      parts[0].kind = ExpertPartKind::gate_up;
      parts[1].kind = ExpertPartKind::down;
      map.experts.emplace_back(kExperts, parts);
    }
    map.dense.output = square;
    auto made = CpuBackend::make(config, map, kernels::kernel_table(kernels::usable_isas().back()),
                                 pool, {1, 16}, ledger);
    CHECK(made.ok());
    backend = std::move(*made);
  }
  static const std::byte* bytes(const float* floats) {
    return reinterpret_cast<const std::byte*>(floats);
  }

  ModelConfig config;
  WeightMap map;
  std::vector<float> routers;
  std::vector<float> norm = random_floats(kHidden, 2);
  std::vector<float> hidden = random_floats(kHidden, 3);
  ComputePool pool{2};
  Ledger ledger;
  std::unique_ptr<CpuBackend> backend;
};

Model& model() {
  static Model made;
  return made;
}

void route(benchmark::State& state) {
  std::vector<int32_t> experts(kUsed);
  std::vector<float> weights(kUsed);
  BatchBuffers batch;
  batch.hidden = model().hidden.data();
  batch.routing = {experts.data(), weights.data(), kUsed};
  for (size_t layer = 0; auto _ : state) model().backend->route(layer++ % kLayers, 0, 1, batch);
}

void predict(benchmark::State& state) {
  const auto count = static_cast<size_t>(state.range(0));
  std::vector<float> logits(kPredictLayersMax * kExperts);
  for (uint32_t layer = 0; auto _ : state) {
    uint32_t layers[kPredictLayersMax];
    for (uint32_t i = 0; i < count; ++i) layers[i] = (layer + i) % kLayers;
    model().backend->predict({layers, count}, model().hidden.data(), logits.data());
    ++layer;
  }
}

/// The predictor at distance 2: routers, ranking and, where asked, the correction.
void predictor(benchmark::State& state) {
  const bool corrected = state.range(0) != 0;
  CorrectionBytes file(kLayers, kExperts, 0);
  const uint32_t inputs = CorrectionBytes::predicted | CorrectionBytes::chosen;
  const std::vector<float> floats = random_floats(kExperts * (1 + 2 * kExperts), 4);
  for (uint32_t layer = 1; layer < kLayers; ++layer)
    for (uint32_t distance = 1; distance <= std::min(layer, 2u); ++distance)
      file.map(layer, distance, inputs, floats);
  const auto correction = Correction::parse(file.bytes(), {kLayers, kExperts, 0}, "made up");
  CHECK(correction.ok());
  Predictor predicting(*model().backend, model().config, model().map, {},
                       corrected ? &*correction : nullptr);
  const int32_t experts[kUsed] = {3, 14, 15, 92, 65, 35, 89, 79};
  const float weights[kUsed] = {};
  const TokenState token{model().hidden.data(), experts, weights};
  for (uint32_t layer = 0; auto _ : state) {
    benchmark::DoNotOptimize(predicting.predict(layer, token, {.distance = 2}));
    layer = (layer + 1) % (kLayers - 2);
  }
}

BENCHMARK(route)->UseRealTime();
BENCHMARK(predict)->ArgName("layers")->DenseRange(1, 3)->UseRealTime();
BENCHMARK(predictor)->ArgName("corrected")->DenseRange(0, 1)->UseRealTime();

}  // namespace
}  // namespace sluice

BENCHMARK_MAIN();
