// Routers asked early, on whole (tiny) models: the stage that asks them and the predictor above it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/random.h"
#include "engine/model_files.h"
#include "forward/batch_layout.h"
#include "lookahead/lookahead_stats.h"
#include "quant/encode.h"
#include "tests/support/hand_built_engine.h"
#include "text/tokenizer.h"

namespace sluice {
namespace {

using Floats = std::vector<float>;
using Layers = std::vector<uint32_t>;

/// 3 layers, 16 experts of which 4 are used, hidden size 64. Routers of different formats, so that
/// one question needs the state in several.
class Prediction3Layers : public testing::Test {
 protected:
  Prediction3Layers()
      : model_(ModelBytes::open(SLUICE_SOURCE_DIR "/tests/data/cases/qwen3moe/model.gguf")),
        map_(model_->weights()) {
    store_router(0, Dtype::q8_0);
    store_router(2, Dtype::f16);
  }

  const ModelConfig& config() const { return model_->config(); }
  size_t expert_count() const { return config().expert_count; }

  /// Replaces a layer's router by the same numbers in another format.
  void store_router(size_t layer, Dtype dtype) {
    Matrix& router = map_.dense.layers[layer].router;
    ASSERT_EQ(router.dtype, Dtype::f32);
    const DtypeInfo& info = dtype_info(dtype);
    const size_t blocks = router.rows * router.cols / info.block_elements;
    std::vector<std::byte>& bytes = stored_.emplace_back(blocks * info.block_bytes);
    encoder(dtype)(reinterpret_cast<const float*>(router.data), blocks, bytes.data());
    router = {dtype, router.rows, router.cols, bytes.size() / router.rows, bytes.data()};
  }

  std::unique_ptr<CpuBackend> backend(kernels::Isa isa = kernels::usable_isas().back()) {
    auto made =
        CpuBackend::make(config(), map_, kernels::kernel_table(isa), pool_, {4, 64}, ledger_);
    CHECK(made.ok());
    return std::move(*made);
  }

  Floats random_state(uint64_t seed) const {
    Random random(seed);
    Floats state(config().hidden_size);
    for (float& value : state) value = static_cast<float>(random.uniform() * 6 - 3);
    return state;
  }

  Floats asked(Backend& backend, const Layers& layers, const Floats& state) const {
    Floats logits(layers.size() * expert_count());
    backend.predict(layers, state.data(), logits.data());
    return logits;
  }

  /// By the reference kernels, one after the other.
  Floats expected_logits(uint32_t layer, const Floats& state) const {
    const kernels::KernelTable& table = kernels::kernel_table(kernels::Isa::ref);
    const LayerWeights& weights = map_.dense.layers[layer];
    Floats normalised(state.size());
    table.rms_norm(state.data(), reinterpret_cast<const float*>(weights.ffn_norm.data),
                   config().rms_epsilon, state.size(), normalised.data());
    alignas(64) std::byte row[4096];
    const ActivationFormat format = dtype_info(weights.router.dtype).activation;
    write_activations(table, format, normalised.data(), 0, state.size(), state.size(), row);
    Floats logits(expert_count());
    table.matvec[static_cast<size_t>(weights.router.dtype)]({.weights = weights.router.data,
                                                             .row_bytes = weights.router.row_bytes,
                                                             .row_count = weights.router.rows,
                                                             .cols = weights.router.cols,
                                                             .activations = row,
                                                             .activation_stride = sizeof(row),
                                                             .token_rows = nullptr,
                                                             .token_count = 1,
                                                             .out = logits.data(),
                                                             .out_stride = logits.size()});
    return logits;
  }

  std::unique_ptr<ModelBytes> model_;
  WeightMap map_;
  std::vector<std::vector<std::byte>> stored_;
  ComputePool pool_{2};
  Ledger ledger_;
};

TEST_F(Prediction3Layers, EachRouterGivesItsBitsWhateverIsAskedBesideIt) {
  const Floats state = random_state(1);
  Floats expected;
  for (uint32_t layer = 0; layer < 3; ++layer) {
    const Floats logits = expected_logits(layer, state);
    expected.insert(expected.end(), logits.begin(), logits.end());
  }
  for (const kernels::Isa isa : kernels::usable_isas()) {
    SCOPED_TRACE(kernels::isa_name(isa));
    const auto asking = backend(isa);
    EXPECT_EQ(asked(*asking, {0, 1, 2}, state), expected) << "fused";
    Floats separate;
    for (uint32_t layer = 0; layer < 3; ++layer) {
      const Floats logits = asked(*asking, {layer}, state);
      separate.insert(separate.end(), logits.begin(), logits.end());
    }
    EXPECT_EQ(separate, expected);
    const Floats again = asked(*asking, {2, 2, 0, 2}, state);
    EXPECT_TRUE(std::equal(again.end() - 16, again.end(), expected.begin() + 32));
  }
}

/// With all experts used and nothing renormalised, the routing shows every score.
TEST_F(Prediction3Layers, IsWhatTheRouterSeesBeforeItsSoftmax) {
  ModelConfig open = config();
  open.expert_used_count = open.expert_count;
  open.gating.renormalise = false;
  const kernels::KernelTable& table = kernels::kernel_table(kernels::usable_isas().back());
  auto made = CpuBackend::make(open, map_, table, pool_, {4, 64}, ledger_);
  ASSERT_TRUE(made.ok());
  std::vector<int32_t> experts(16);
  Floats weights(16);
  for (uint32_t layer = 0; layer < 3; ++layer) {
    Floats state = random_state(layer + 2);
    BatchBuffers batch;
    batch.hidden = state.data();
    batch.routing = {experts.data(), weights.data(), 16};
    (*made)->route(layer, 0, 1, batch);
    Floats scores = asked(**made, {layer}, state);
    table.softmax(scores.data(), scores.size());
    for (size_t rank = 0; rank < 16; ++rank)
      EXPECT_EQ(weights[rank], scores[static_cast<size_t>(experts[rank])]) << layer << ' ' << rank;
  }
}

/// One layer's MoE half, with or without questions between its stages.
TEST_F(Prediction3Layers, AskingDisturbsNothing) {
  const auto used = backend();
  const size_t used_count = config().expert_used_count;
  const BatchLayout layout(config(), map_, {1, 1, 64});
  auto arena = os::Arena::allocate(layout.bytes(), "a batch");
  ASSERT_TRUE(arena.ok());
  std::vector<int32_t> pair_of(used_count);
  std::iota(pair_of.begin(), pair_of.end(), 0);
  const Floats other = random_state(99);
  const int32_t token = 0;

  const auto run = [&](const Layers& questions) {
    const auto ask = [&] {
      if (!questions.empty()) asked(*used, questions, other);
    };
    BatchBuffers batch = layout.place(arena->begin());
    batch.hidden = layout.hidden(arena->begin());
    batch.pair_of = pair_of.data();
    std::ranges::copy(random_state(7), batch.hidden);
    used->route(1, 0, 1, batch);
    ask();
    std::vector<ExpertWork> works;
    for (size_t rank = 0; rank < used_count; ++rank) {
      std::vector<const std::byte*> parts;
      for (const ExpertPart& part : map_.experts[1].parts())
        parts.push_back(
            model_->bytes_of(part.extent(static_cast<uint32_t>(batch.routing.experts[rank])))
                .data());
      works.push_back({map_.experts[1].view(parts), &token, 1, rank});
    }
    used->expert_gate_up(works, batch);
    ask();
    used->expert_down(works, batch);
    ask();
    used->combine(1, 1, batch);
    ask();
    Floats logits(config().vocabulary_size);
    used->output(1, batch.hidden, logits.data());
    return logits;
  };
  const Floats alone = run({});
  EXPECT_EQ(run({0, 1, 2}), alone);
  EXPECT_EQ(run({2}), alone);
}

TEST_F(Prediction3Layers, ThePredictorNamesTheHighestScoresOfLaterRouters) {
  const auto asking = backend();
  Predictor predictor(*asking, config(), map_, {}, nullptr);
  const Floats state = random_state(11);
  const auto predictions = predictor.predict(0, {.hidden = state.data()}, {.distance = 2});
  ASSERT_EQ(predictions.size(), 2u);
  for (uint32_t distance = 1; distance <= 2; ++distance) {
    const Prediction& prediction = predictions[distance - 1];
    EXPECT_EQ(prediction.layer, distance);
    EXPECT_EQ(prediction.distance, distance);
    const Floats scores = expected_logits(distance, state);
    EXPECT_TRUE(std::ranges::equal(prediction.router_logits, scores));
    std::vector<uint32_t> order(16);
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, [&](uint32_t a, uint32_t b) { return scores[a] > scores[b]; });
    order.resize(4);
    EXPECT_TRUE(std::ranges::equal(prediction.experts, order));
  }
}

constexpr std::string_view kText =
    "Mr. Darcy looked at her with some surprise, and said that he had not expected to find her at "
    "home. She answered that her sister was gone to the village, and would be back before dinner. "
    "Tom looked at the fence and thought of all the work that was before him; the whale was seen "
    "no more that day, and the ship went on her way to the south under a clear sky. And the king "
    "said unto his servants, Go ye into the city, and bring me word again of what ye have seen.";

/// Token by token over the demo model, with the predictor asked after every router.
TEST(PredictionWhileDecoding, ForeseesMostPicksAndChangesNothing) {
  const auto model = ModelBytes::open(SLUICE_SOURCE_DIR "/models/demo-q4_k_m.gguf");
  auto vocabulary = read_vocabulary(model->header());
  ASSERT_TRUE(vocabulary.ok());
  const auto tokenizer = text::Tokenizer::make(std::move(*vocabulary));
  ASSERT_TRUE(tokenizer.ok());
  const auto tokens = (*tokenizer)->tokenize(kText, {});
  const ModelConfig& config = model->config();

  ComputePool pool(2);
  HandBuiltOptions options;
  options.context_tokens = 256;
  HandBuiltEngine engine(*model, pool, options);
  Predictor predictor(engine.routing(), config, model->weights(), {}, nullptr);
  LookaheadStats stats(config.layer_count(), 64);
  const std::vector<Whereabouts> nowhere(config.expert_used_count, Whereabouts::absent);
  const auto decode = [&] {
    engine.reset();
    Floats logits;
    for (const int32_t token : tokens) {
      const auto row = engine.append({&token, 1});
      EXPECT_TRUE(row.ok());
      logits.insert(logits.end(), row->begin(), row->end());
    }
    return logits;
  };
  const Floats alone = decode();
  engine.routing().on_route = [&](size_t layer, size_t, size_t, const BatchBuffers& batch) {
    const std::span experts(batch.routing.experts, batch.routing.used_count);
    const std::span weights(batch.routing.weights, batch.routing.used_count);
    const auto index = static_cast<uint32_t>(layer);
    stats.on_routing(index, experts, nowhere);
    for (const Prediction& prediction :
         predictor.predict(index, {batch.hidden, experts, weights}, {.distance = 3}))
      stats.on_prediction(prediction);
  };
  EXPECT_EQ(decode(), alone);

  const size_t picks = tokens.size() * config.expert_used_count;
  EXPECT_EQ(stats.total().pick_count, picks * 8);
  EXPECT_EQ(stats.at(1).pick_count, picks * 7);
  EXPECT_EQ(stats.at(2).pick_count, picks * 6);
  EXPECT_EQ(stats.at(3).pick_count, picks * 5);
  // On 16,384 tokens of held-out text: 0.735, 0.660, 0.599 (docs/lookahead.md).
  EXPECT_NEAR(stats.at(1).recall(), 0.735, 0.06);
  EXPECT_NEAR(stats.at(2).recall(), 0.660, 0.06);
  EXPECT_NEAR(stats.at(3).recall(), 0.599, 0.06);
  EXPECT_EQ(stats.at(1).predicted_count, stats.at(1).foreseen_count + stats.at(1).mistaken_count);
  EXPECT_EQ(stats.at(1).miss_coverage(), stats.at(1).recall()) << "every pick was a miss";
}

}  // namespace
}  // namespace sluice
