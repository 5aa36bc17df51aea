#include "lookahead/predictor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "testing/correction_bytes.h"

namespace sluice {
namespace {

using Ids = std::vector<uint32_t>;
using Floats = std::vector<float>;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// Its routers read their logits off the state: [layer][expert].
class OpenBackend final : public Backend {
 public:
  explicit OpenBackend(size_t expert_count) : expert_count_(expert_count) {}

  std::vector<Ids> questions;

  void predict(std::span<const uint32_t> layers, const float* hidden, float* logits) override {
    questions.emplace_back(layers.begin(), layers.end());
    for (const uint32_t layer : layers)
      logits = std::copy_n(hidden + layer * expert_count_, expert_count_, logits);
  }
  void embed(std::span<const int32_t>, float*) override {}
  void mix_tokens(size_t, size_t, size_t, SequenceState&, float*) override {}
  void route(size_t, size_t, size_t, const BatchBuffers&) override {}
  void expert_gate_up(std::span<const ExpertWork>, const BatchBuffers&) override {}
  void expert_down(std::span<const ExpertWork>, const BatchBuffers&) override {}
  void combine(size_t, size_t, const BatchBuffers&) override {}
  void add_ffn(size_t, size_t, const BatchBuffers&) override {}
  void prepare_ffn(size_t, size_t, size_t, const BatchBuffers&) override {}
  void route_early(size_t, size_t, size_t, const BatchBuffers&) override {}
  void output(size_t, const float*, float*) override {}

 private:
  size_t expert_count_;
};

/// A model of `pattern.size()` layers, 'm' with 4 experts of which 2 are used, '3' with 3, 'd'
/// dense.
struct Model {
  explicit Model(std::string_view pattern) : backend(4) {
    config.expert_count = 4;
    config.expert_used_count = 2;
    config.layers.resize(pattern.size());
    ExpertPart parts[2];
    parts[0].kind = ExpertPartKind::gate_up;
    parts[1].kind = ExpertPartKind::down;
    for (const char kind : pattern)
      map.experts.push_back(kind == 'd' ? ExpertLayout()
                                        : ExpertLayout(kind == 'm' ? 4 : 3, parts));
    // In layer l the scores fall from expert l on, around the corner.
    for (size_t layer = 0; layer < pattern.size(); ++layer)
      for (size_t expert = 0; expert < 4; ++expert)
        hidden.push_back(-static_cast<float>((expert + 4 - layer % 4) % 4));
  }

  Predictor predictor(const Predictor::Limits& limits = {},
                      const Correction* correction = nullptr) {
    return {backend, config, map, limits, correction};
  }
  TokenState state() const { return {.hidden = hidden.data()}; }

  ModelConfig config;
  WeightMap map;
  OpenBackend backend;
  Floats hidden;
};

/// "layer@distance:first expert" of each prediction.
std::string summary(std::span<const Prediction> predictions) {
  std::string text;
  for (const Prediction& prediction : predictions)
    text += fmt::format("{}@{}:{} ", prediction.layer, prediction.distance, prediction.experts[0]);
  return text;
}

Ids ranked(const Floats& scores, size_t count) {
  Ids experts(count);
  rank_experts(scores, experts);
  return experts;
}

TEST(RankExperts, HighestFirstTiesToTheLowerId) {
  EXPECT_EQ(ranked({0.1f, 0.5f, 0.3f, 0.4f}, 3), (Ids{1, 3, 2}));
  EXPECT_EQ(ranked({1, 2, 2, 1, 2}, 4), (Ids{1, 2, 4, 0}));
  EXPECT_EQ(ranked({1, 2, 2, 1, 2}, 5), (Ids{1, 2, 4, 0, 3}));
  EXPECT_EQ(ranked({0.0f, -0.0f, 0.0f}, 2), (Ids{0, 1}));
  EXPECT_EQ(ranked({3}, 1), (Ids{0}));
  EXPECT_EQ(ranked({3, 4}, 0), Ids());
}

TEST(RankExperts, AlwaysGivesDistinctIds) {
  for (Ids experts : {ranked({kNan, 1, kNan, 2}, 4), ranked(Floats(4, kNan), 4),
                      ranked({-INFINITY, INFINITY, kNan, INFINITY}, 4)}) {
    std::ranges::sort(experts);
    EXPECT_EQ(experts, (Ids{0, 1, 2, 3}));
  }
}

TEST(Predictor, LooksAsFarAsItIsToldOnEachCall) {
  Model model("mmmmm");
  Predictor predictor = model.predictor();
  EXPECT_EQ(summary(predictor.predict(0, model.state(), {.distance = 1})), "1@1:1 ");
  EXPECT_EQ(summary(predictor.predict(0, model.state(), {.distance = 3})), "1@1:1 2@2:2 3@3:3 ");
  EXPECT_EQ(summary(predictor.predict(2, model.state(), {.distance = 3})), "3@1:3 4@2:0 ");
  EXPECT_EQ(summary(predictor.predict(4, model.state(), {.distance = 3})), "");
  EXPECT_EQ(summary(predictor.predict(0, model.state(), {.distance = 0})), "");
  EXPECT_EQ(summary(predictor.predict(0, model.state(), {.distance = 9})), "1@1:1 2@2:2 3@3:3 ");
  EXPECT_EQ(model.backend.questions, (std::vector<Ids>{{1}, {1, 2, 3}, {3, 4}, {1, 2, 3}}))
      << "one question for all distances, none for nothing";
}

TEST(Predictor, NamesAsManyAsItIsTold) {
  Model model("mm");
  Predictor predictor = model.predictor({.width_max = 3});
  const auto named = [&](uint32_t width) {
    const auto experts =
        predictor.predict(0, model.state(), {.distance = 2, .width = width})[0].experts;
    return Ids(experts.begin(), experts.end());
  };
  EXPECT_EQ(named(0), (Ids{1, 2})) << "as many as the model uses";
  EXPECT_EQ(named(1), (Ids{1}));
  EXPECT_EQ(named(3), (Ids{1, 2, 3}));
  EXPECT_EQ(named(4), (Ids{1, 2, 3})) << "cut to the limit";
  Predictor wide = model.predictor({.width_max = 100});
  EXPECT_EQ(wide.predict(0, model.state(), {.distance = 2, .width = 100})[0].experts.size(), 4u);
}

TEST(Predictor, GivesTheRoutersOwnLogitsToo) {
  Model model("mmm");
  Predictor predictor = model.predictor();
  const auto predictions = predictor.predict(0, model.state(), {.distance = 2});
  EXPECT_TRUE(std::ranges::equal(predictions[1].router_logits, Floats{-2, -3, 0, -1}));
}

/// A router of three scores leaves the fourth place as it was.
TEST(Predictor, NamesOnlyExpertsThatTheLayerHas) {
  Model model("m3m3");
  Predictor predictor = model.predictor();
  for (const uint32_t width : {3, 4}) {
    const auto predictions = predictor.predict(0, model.state(), {.distance = 3, .width = width});
    EXPECT_TRUE(std::ranges::equal(predictions[0].experts, Ids{1, 2, 0})) << width;
    EXPECT_TRUE(std::ranges::equal(predictions[0].router_logits, Floats{-3, 0, -1}));
    EXPECT_EQ(predictions[1].experts.size(), width);
    EXPECT_TRUE(std::ranges::equal(predictions[2].experts, Ids{0, 1, 2})) << width;
  }
}

TEST(Predictor, DenseLayersPredictButAreNotPredicted) {
  Model model("dddmdm");
  Predictor predictor = model.predictor();
  const auto at = [&](uint32_t layer) {
    return summary(predictor.predict(layer, model.state(), {.distance = 3}));
  };
  EXPECT_EQ(at(0), "") << "the first layer with experts is three layers away";
  EXPECT_EQ(at(1), "3@2:3 ");
  EXPECT_EQ(at(2), "3@1:3 ");
  EXPECT_EQ(at(3), "5@2:1 ");
  EXPECT_EQ(at(4), "5@1:1 ");
  EXPECT_EQ(summary(predictor.predict(1, model.state(), {.distance = 1})), "");
}

TEST(Predictor, TheFirstLayerMayBeLeftToDemand) {
  Model model("ddmm");
  Predictor predictor = model.predictor({.first = Predictor::FirstLayer::by_demand});
  EXPECT_EQ(summary(predictor.predict(0, model.state(), {.distance = 3})), "");
  EXPECT_EQ(summary(predictor.predict(1, model.state(), {.distance = 3})), "");
  EXPECT_EQ(summary(predictor.predict(2, model.state(), {.distance = 3})), "3@1:3 ");
}

TEST(Predictor, AnEmbeddingAloneSaysNothing) {
  Model model("mm");
  Predictor predictor = model.predictor();
  EXPECT_TRUE(predictor.predict_first(model.hidden.data(), {.distance = 3}).empty());
  EXPECT_TRUE(model.backend.questions.empty());
}

/// For a model of `layer_count` layers of 4 experts.
Correction correction_of(uint32_t layer_count, const CorrectionBytes& bytes) {
  auto correction = Correction::parse(bytes.bytes(), {layer_count, 4, 0}, "made up");
  CHECK(correction.ok());
  return std::move(*correction);
}

TEST(Predictor, AnIdentityChangesNothing) {
  Model model("mmmm");
  CorrectionBytes bytes(4, 4, 0);
  for (uint32_t layer = 0; layer < 4; ++layer)
    for (uint32_t distance = 1; distance <= std::min(layer, kDistanceMax); ++distance)
      bytes.identity(layer, distance);
  const Correction correction = correction_of(4, bytes);
  Predictor plain = model.predictor();
  Predictor corrected = model.predictor({}, &correction);
  for (uint32_t layer = 0; layer < 4; ++layer) {
    const auto expected = plain.predict(layer, model.state(), {.distance = 3, .width = 4});
    const auto ours = corrected.predict(layer, model.state(), {.distance = 3, .width = 4});
    ASSERT_EQ(ours.size(), expected.size());
    for (size_t i = 0; i < ours.size(); ++i) {
      EXPECT_TRUE(std::ranges::equal(ours[i].experts, expected[i].experts));
      EXPECT_TRUE(std::ranges::equal(ours[i].router_logits, expected[i].router_logits));
    }
  }
}

TEST(Predictor, ACorrectionIsAppliedWhereItHasAMap) {
  Model model("mmm");
  Floats reversed(4 + 16);
  for (size_t i = 0; i < 4; ++i) reversed[4 + i * 4 + i] = -1.0f;
  const Correction correction =
      correction_of(3, CorrectionBytes(3, 4, 0).map(2, 2, CorrectionBytes::predicted, reversed));
  Predictor predictor = model.predictor({}, &correction);
  EXPECT_EQ(summary(predictor.predict(0, model.state(), {.distance = 2})), "1@1:1 2@2:1 ")
      << "layer 2's scores fall from 2 on, so its lowest is 1";
  EXPECT_EQ(model.backend.questions.back(), (Ids{1, 2}));
}

/// Expert 3 gets all for the choice of expert 0.
TEST(Predictor, ACorrectionMayUseTheAskingLayersChoice) {
  Model model("dmm");
  Floats floats(4 + 16);
  floats[4 + 3] = 100.0f;
  const Correction correction = correction_of(3, CorrectionBytes(3, 4, 0)
                                                     .map(2, 1, CorrectionBytes::chosen, floats)
                                                     .map(1, 1, CorrectionBytes::chosen, floats));
  Predictor predictor = model.predictor({}, &correction);
  TokenState state = model.state();
  const int32_t chosen[] = {2, 0};
  const float weights[] = {0.75f, 0.25f};
  state.experts = chosen;
  state.weights = weights;
  EXPECT_EQ(summary(predictor.predict(1, state, {.distance = 1})), "2@1:3 ");
  EXPECT_EQ(summary(predictor.predict(0, model.state(), {.distance = 1})), "1@1:0 ")
      << "a dense layer has chosen nothing: all zeros";
}

TEST(Predictor, ACorrectionMakesTheEmbeddingSpeak) {
  Model model("mmm");
  const Correction correction =
      correction_of(3, CorrectionBytes(3, 4, 0).identity(0, 1).identity(1, 2));
  Predictor predictor = model.predictor({}, &correction);
  const float* embedding = model.hidden.data();
  EXPECT_EQ(summary(predictor.predict_first(embedding, {.distance = 3})), "0@1:0 1@2:1 ");
  EXPECT_EQ(summary(predictor.predict_first(embedding, {.distance = 1})), "0@1:0 ");
  Predictor by_demand = model.predictor({.first = Predictor::FirstLayer::by_demand}, &correction);
  EXPECT_EQ(summary(by_demand.predict_first(embedding, {.distance = 3})), "");
  Model dense("dmm");
  Predictor after_dense = dense.predictor({}, &correction);
  EXPECT_EQ(summary(after_dense.predict_first(embedding, {.distance = 3})), "");
}

}  // namespace
}  // namespace sluice
