#include "model/weight_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "testing/model_sketch.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

struct Planned {
  gguf::GgufFile file;
  ModelConfig config;
  Result<std::unique_ptr<WeightMap>> map;

  const WeightMap& operator*() const { return **map; }
};

Planned plan(const ModelSketch& sketch) {
  gguf::GgufFile file = sketch.open();
  auto config = read_config(file, Log(LogLevel::quiet));
  CHECK(config.ok());
  auto map = plan_weights(file, *config);
  return {std::move(file), std::move(*config), std::move(map)};
}

void expect_error(const ModelSketch& sketch, ErrorKind kind, const std::string& part) {
  const Planned planned = plan(sketch);
  ASSERT_FALSE(planned.map.ok()) << "expected: " << part;
  EXPECT_EQ(planned.map.error().kind, kind) << planned.map.error().message;
  EXPECT_THAT(planned.map.error().message, HasSubstr(part));
}

void expect_shape(const Matrix& matrix, size_t rows, size_t cols) {
  EXPECT_EQ(matrix.rows, rows);
  EXPECT_EQ(matrix.cols, cols);
  EXPECT_EQ(matrix.row_bytes, dtype_bytes(matrix.dtype, cols));
}

TEST(WeightMap, EveryTensorPlaysItsPart) {
  const Planned planned = plan(ModelSketch());
  ASSERT_TRUE(planned.map.ok()) << planned.map.error().message;
  const WeightMap& map = *planned;
  EXPECT_EQ(planned.config.vocabulary_size, 40u);
  EXPECT_FALSE(map.output_is_embedding);
  expect_shape(map.dense.embedding, 40, 64);
  expect_shape(map.dense.output_norm, 1, 64);
  expect_shape(map.dense.output, 40, 64);
  ASSERT_EQ(map.dense.layers.size(), 2u);
  const LayerWeights& layer = map.dense.layers[1];
  expect_shape(layer.mixer_norm, 1, 64);
  expect_shape(layer.attention.query.weight, 64, 64);
  expect_shape(layer.attention.key.weight, 32, 64);
  expect_shape(layer.attention.value.weight, 32, 64);
  expect_shape(layer.attention.output.weight, 64, 64);
  expect_shape(layer.attention.query_norm, 1, 16);
  expect_shape(layer.attention.key_norm, 1, 16);
  expect_shape(layer.ffn_norm, 1, 64);
  expect_shape(layer.router, 6, 64);

  std::set<std::string> names;
  std::set<const Matrix*> matrices;
  for (const DenseTensor& tensor : map.dense_tensors) {
    names.insert(tensor.name);
    matrices.insert(tensor.matrix);
    EXPECT_EQ(tensor.extent, planned.file.find_tensor(tensor.name)->extent);
    EXPECT_EQ(tensor.matrix->bytes(), tensor.extent.bytes);
  }
  EXPECT_EQ(names.size(), 3u + 2 * 9) << "all but the experts, each once";
  EXPECT_EQ(matrices.size(), names.size());
}

TEST(WeightMap, ExpertsAreSlicesOfTheirTensors) {
  const Planned planned = plan(ModelSketch());
  ASSERT_TRUE(planned.map.ok());
  const WeightMap& map = *planned;
  ASSERT_EQ(map.experts.size(), 2u);
  const auto parts = map.experts[1].parts();
  ASSERT_EQ(parts.size(), 3u);
  const std::array<std::pair<const char*, ExpertPartKind>, 3> expected{
      {{"blk.1.ffn_gate_exps.weight", ExpertPartKind::gate},
       {"blk.1.ffn_up_exps.weight", ExpertPartKind::up},
       {"blk.1.ffn_down_exps.weight", ExpertPartKind::down}}};
  for (size_t i = 0; i < 3; ++i) {
    const FileExtent tensor = planned.file.find_tensor(expected[i].first)->extent;
    EXPECT_EQ(parts[i].kind, expected[i].second);
    EXPECT_EQ(parts[i].extent(0), (FileExtent{0, tensor.offset, 8192}));
    EXPECT_EQ(parts[i].extent(5).end(), tensor.end());
  }
  expect_shape(parts[0].shape, 32, 64);
  expect_shape(parts[2].shape, 64, 32);

  EXPECT_EQ(map.expert_bytes(), 2u * 6 * 3 * 8192);
  EXPECT_EQ(map.expert_bytes_per_token(planned.config), 2u * 2 * 3 * 8192);
  uint64_t all = 0;
  for (const auto& tensor : planned.file.tensors()) all += tensor.extent.bytes;
  EXPECT_EQ(map.dense_bytes() + map.expert_bytes(), all);
  EXPECT_EQ(map.dense_bytes_per_token(), map.dense_bytes() - 40 * 64 * 4);
}

TEST(WeightMap, QueryKeyAndValueMayBeOneTensor) {
  const Planned planned = plan(ModelSketch()
                                   .erase_tensor("blk.1.attn_q.weight")
                                   .erase_tensor("blk.1.attn_k.weight")
                                   .erase_tensor("blk.1.attn_v.weight")
                                   .set_tensor("blk.1.attn_qkv.weight", Dtype::f32, {64, 128}));
  ASSERT_TRUE(planned.map.ok()) << planned.map.error().message;
  const LayerWeights& layer = (*planned).dense.layers[1];
  expect_shape(layer.attention.query.weight, 64, 64);
  expect_shape(layer.attention.key.weight, 32, 64);
  expect_shape(layer.attention.value.weight, 32, 64);
  const uint64_t begin = planned.file.find_tensor("blk.1.attn_qkv.weight")->extent.offset;
  const auto extent_of = [&](const Matrix& matrix) {
    return std::ranges::find((*planned).dense_tensors, &matrix, &DenseTensor::matrix)->extent;
  };
  EXPECT_EQ(extent_of(layer.attention.query.weight).offset, begin);
  EXPECT_EQ(extent_of(layer.attention.key.weight).offset, begin + 64 * 64 * 4);
  EXPECT_EQ(extent_of(layer.attention.value.weight).offset, begin + 96 * 64 * 4);
  EXPECT_EQ(extent_of(layer.attention.value.weight).bytes, 32u * 64 * 4);
}

TEST(WeightMap, BiasesAreAddedWhereTheFileHasThem) {
  const Planned planned = plan(ModelSketch()
                                   .set_tensor("blk.0.attn_q.bias", Dtype::f32, {64})
                                   .set_tensor("blk.0.exp_probs_b.bias", Dtype::f32, {6}));
  ASSERT_TRUE(planned.map.ok()) << planned.map.error().message;
  expect_shape((*planned).dense.layers[0].attention.query.bias, 1, 64);
  expect_shape((*planned).dense.layers[0].selection_bias, 1, 6);
  EXPECT_FALSE((*planned).dense.layers[0].attention.key.bias.present());
  EXPECT_FALSE((*planned).dense.layers[1].attention.query.bias.present());
  expect_error(ModelSketch().set_tensor("blk.0.attn_q.bias", Dtype::f32, {32}), ErrorKind::corrupt,
               "'blk.0.attn_q.bias' has shape [32]");
  expect_error(ModelSketch().set_tensor("blk.0.attn_q.bias", Dtype::f16, {64}),
               ErrorKind::unsupported, "'blk.0.attn_q.bias' has type F16");
}

ModelSketch with_ffn(ModelSketch sketch, const std::string& kind, uint64_t width, int layer = 0) {
  const std::string prefix = "blk." + std::to_string(layer) + ".ffn_";
  return sketch.set_tensor(prefix + "gate" + kind + ".weight", Dtype::f32, {64, width})
      .set_tensor(prefix + "up" + kind + ".weight", Dtype::f32, {64, width})
      .set_tensor(prefix + "down" + kind + ".weight", Dtype::f32, {width, 64});
}

ModelSketch with_dense_layer(ModelSketch sketch, int layer) {
  for (const char* part : {"gate_inp", "gate_exps", "up_exps", "down_exps"})
    sketch.erase_tensor("blk." + std::to_string(layer) + ".ffn_" + part + ".weight");
  return with_ffn(std::move(sketch), "", 96, layer);
}

TEST(WeightMap, AnExpertMayBeShared) {
  const Planned planned =
      plan(with_ffn(ModelSketch(), "_shexp", 48)
               .set_tensor("blk.0.ffn_gate_inp_shexp.weight", Dtype::f32, {64}));
  ASSERT_TRUE(planned.map.ok()) << planned.map.error().message;
  const LayerWeights& layer = (*planned).dense.layers[0];
  expect_shape(layer.shared.gate, 48, 64);
  expect_shape(layer.shared.down, 64, 48);
  expect_shape(layer.shared_gate, 1, 64);
  EXPECT_FALSE(layer.ffn.present());
  EXPECT_FALSE((*planned).dense.layers[1].shared.present());
  expect_error(with_ffn(ModelSketch(), "_shexp", 48)
                   .set_tensor("blk.0.ffn_up_shexp.weight", Dtype::f32, {64, 40}),
               ErrorKind::corrupt, "'blk.0.ffn_up_shexp.weight' has shape [64, 40]");
}

TEST(WeightMap, ADenseFfnMayStandBesideTheExperts) {
  ModelSketch sketch = with_ffn(ModelSketch(), "", 96);
  for (const char* norm : {"post_attention_norm", "pre_ffw_norm_2", "post_ffw_norm",
                           "post_ffw_norm_1", "post_ffw_norm_2"})
    sketch.set_tensor(std::string("blk.0.") + norm + ".weight", Dtype::f32, {64});
  sketch.set_tensor("blk.0.ffn_gate_inp.scale", Dtype::f32, {64})
      .set_tensor("blk.0.ffn_down_exps.scale", Dtype::f32, {6})
      .set_tensor("blk.0.layer_output_scale.weight", Dtype::f32, {1});
  const Planned planned = plan(sketch);
  ASSERT_TRUE(planned.map.ok()) << planned.map.error().message;
  const LayerWeights& layer = (*planned).dense.layers[0];
  expect_shape(layer.shared.gate, 96, 64);
  EXPECT_FALSE(layer.ffn.present());
  EXPECT_EQ(&layer.norm_before_experts(), &layer.experts_norm);
  for (const Matrix* norm :
       {&layer.norm_after_mixer, &layer.experts_norm, &layer.norm_after_ffn,
        &layer.norm_after_shared, &layer.norm_after_experts, &layer.router_norm})
    expect_shape(*norm, 1, 64);
  expect_shape(layer.expert_scales, 1, 6);
  expect_shape(layer.output_scale, 1, 1);
  const LayerWeights& plain = (*planned).dense.layers[1];
  EXPECT_EQ(&plain.norm_before_experts(), &plain.ffn_norm);
}

TEST(WeightMap, KeysServeAsValuesWhereTheFamilySaysSo) {
  const auto without_values = [] { return ModelSketch().erase_tensor("blk.1.attn_v.weight"); };
  const Planned planned = plan(without_values().rename_architecture("gemma4"));
  ASSERT_TRUE(planned.map.ok()) << planned.map.error().message;
  EXPECT_TRUE((*planned).dense.layers[0].attention.value.weight.present());
  EXPECT_FALSE((*planned).dense.layers[1].attention.value.weight.present());
  expect_error(without_values(), ErrorKind::corrupt, "'blk.1.attn_v.weight' is missing");
}

TEST(WeightMap, DivisorsMayDependOnTheContext) {
  const auto with_long = [] {
    return ModelSketch()
        .set("qwen3moe.rope.scaling.original_context_length", uint32_t{400})
        .set_tensor("rope_factors_long.weight", Dtype::f32, {8});
  };
  const Planned planned =
      plan(with_long().set_tensor("rope_factors_short.weight", Dtype::f32, {8}));
  ASSERT_TRUE(planned.map.ok()) << planned.map.error().message;
  const DenseWeights& dense = (*planned).dense;
  EXPECT_EQ(&dense.divisors_for(planned.config, 400), &dense.rope_divisors);
  EXPECT_EQ(&dense.divisors_for(planned.config, 401), &dense.rope_divisors_long);
  expect_error(with_long(), ErrorKind::corrupt, "'rope_factors_short.weight' is missing");
  const Planned llama = plan(ModelSketch().set_tensor("rope_freqs.weight", Dtype::f32, {8}));
  EXPECT_EQ(&(*llama).dense.divisors_for(llama.config, 4000), &(*llama).dense.rope_divisors);
}

TEST(WeightMap, ALayerMayHaveNoExperts) {
  const ModelSketch sketch = with_dense_layer(ModelSketch(), 0);
  const Planned planned = plan(sketch);
  ASSERT_TRUE(planned.map.ok()) << planned.map.error().message;
  EXPECT_EQ((*planned).experts[0].expert_count(), 0u);
  EXPECT_EQ((*planned).experts[1].expert_count(), 6u);
  EXPECT_EQ(&(*planned).first_experts(), &(*planned).experts[1]);
  expect_shape((*planned).dense.layers[0].dense_ffn().gate, 96, 64);
  EXPECT_FALSE((*planned).dense.layers[0].router.present());
  expect_error(with_dense_layer(sketch, 1), ErrorKind::unsupported, "no layer has routed experts");
}

TEST(WeightMap, WithoutAHeadTheEmbeddingIsTheHead) {
  const Planned planned = plan(ModelSketch().erase_tensor("output.weight"));
  ASSERT_TRUE(planned.map.ok()) << planned.map.error().message;
  EXPECT_TRUE((*planned).output_is_embedding);
  EXPECT_EQ((*planned).dense_bytes_per_token(), (*planned).dense_bytes());
  EXPECT_EQ((*planned).dense_tensors.size(), 2u + 2 * 9);
}

TEST(WeightMap, MergedGateAndUp) {
  ModelSketch sketch;
  for (const char* layer : {"blk.0.", "blk.1."}) {
    sketch.erase_tensor(layer + std::string("ffn_gate_exps.weight"));
    sketch.erase_tensor(layer + std::string("ffn_up_exps.weight"));
    sketch.set_tensor(layer + std::string("ffn_gate_up_exps.weight"), Dtype::f32, {64, 64, 6});
  }
  const Planned planned = plan(sketch);
  ASSERT_TRUE(planned.map.ok()) << planned.map.error().message;
  const auto parts = (*planned).experts[0].parts();
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].kind, ExpertPartKind::gate_up);
  expect_shape(parts[0].shape, 64, 64);
  sketch.set_tensor("blk.1.ffn_gate_up_exps.weight", Dtype::f32, {64, 32, 6});
  expect_error(sketch, ErrorKind::corrupt,
               "'blk.1.ffn_gate_up_exps.weight' has shape [64, 32, 6], expected [64, 64, 6]");
}

TEST(WeightMap, NamesEveryTensorThatIsMissing) {
  const ModelSketch whole;
  for (const auto& tensor : whole.tensors()) {
    if (tensor.name == "output.weight") continue;
    expect_error(ModelSketch().erase_tensor(tensor.name), ErrorKind::corrupt,
                 "tensor '" + tensor.name + "' is missing");
  }
}

TEST(WeightMap, NamesEveryTensorOfWrongShape) {
  const ModelSketch whole;
  for (const auto& tensor : whole.tensors()) {
    // The vocabulary is what the embedding says, the experts of a layer what down says.
    const bool gives_rows = tensor.name == "token_embd.weight";
    const bool gives_count = tensor.name.find("ffn_down_exps") != std::string::npos;
    for (size_t i = 0; i < tensor.shape.size(); ++i) {
      if ((gives_rows && i == 1) || (gives_count && i == 2)) continue;
      auto shape = tensor.shape;
      ++shape[i];
      expect_error(ModelSketch().set_tensor(tensor.name, Dtype::f32, shape), ErrorKind::corrupt,
                   "tensor '" + tensor.name + "' has shape");
    }
    auto deeper = tensor.shape;
    deeper.push_back(2);
    if (deeper.size() == 2) deeper.push_back(1);
    expect_error(ModelSketch().set_tensor(tensor.name, Dtype::f32, deeper), ErrorKind::corrupt,
                 "tensor '" + tensor.name + "' has shape");
  }
}

TEST(WeightMap, TheExpertsOfALayerAreCountedInTheFile) {
  const auto with_experts = [](uint64_t count) {
    ModelSketch sketch;
    sketch.set_tensor("blk.1.ffn_gate_inp.weight", Dtype::f32, {64, count});
    sketch.set_tensor("blk.1.ffn_gate_exps.weight", Dtype::f32, {64, 32, count});
    sketch.set_tensor("blk.1.ffn_up_exps.weight", Dtype::f32, {64, 32, count});
    sketch.set_tensor("blk.1.ffn_down_exps.weight", Dtype::f32, {32, 64, count});
    return sketch;
  };
  const Planned planned = plan(with_experts(3));
  ASSERT_TRUE(planned.map.ok()) << planned.map.error().message;
  EXPECT_EQ((*planned).experts[0].expert_count(), 6u);
  EXPECT_EQ((*planned).experts[1].expert_count(), 3u);
  expect_error(with_experts(7), ErrorKind::corrupt, "layer 1 has 7 experts; 2 are used of 6");
  expect_error(with_experts(1), ErrorKind::corrupt, "layer 1 has 1 experts; 2 are used of 6");
}

TEST(WeightMap, NamesTypesThatItCannotDecode) {
  const ModelSketch sketch = [] {
    ModelSketch wide;  // rows of whole super-blocks
    wide.set("qwen3moe.expert_feed_forward_length", uint32_t{256});
    for (const char* layer : {"blk.0.", "blk.1."}) {
      wide.set_tensor(layer + std::string("ffn_gate_exps.weight"), Dtype::f32, {64, 256, 6});
      wide.set_tensor(layer + std::string("ffn_up_exps.weight"), Dtype::f32, {64, 256, 6});
      wide.set_tensor(layer + std::string("ffn_down_exps.weight"), Dtype::f32, {256, 64, 6});
    }
    return wide;
  }();
  ASSERT_TRUE(plan(sketch).map.ok());
  for (const auto& tensor : sketch.tensors()) {
    ModelSketch changed = sketch;
    expect_error(changed.set_tensor(tensor.name, Dtype::i32, tensor.shape), ErrorKind::unsupported,
                 "tensor '" + tensor.name + "' has type I32; supported: F32");
  }
  ModelSketch changed = sketch;
  expect_error(changed.set_tensor("blk.0.ffn_down_exps.weight", Dtype::f64, {256, 64, 6}),
               ErrorKind::unsupported, "has type F64");
  expect_error(ModelSketch().set_tensor("blk.1.ffn_norm.weight", Dtype::f16, {64}),
               ErrorKind::unsupported,
               "tensor 'blk.1.ffn_norm.weight' has type F16; norms and biases must be F32");
}

TEST(WeightMap, EveryMatrixMayHaveATypeOfItsOwn) {
  const Planned planned =
      plan(ModelSketch()
               .set_tensor("token_embd.weight", Dtype::q8_0, {64, 40})
               .set_tensor("blk.0.attn_v.weight", Dtype::bf16, {64, 32})
               .set_tensor("blk.0.ffn_gate_exps.weight", Dtype::q4_0, {64, 32, 6})
               .set_tensor("blk.1.ffn_down_exps.weight", Dtype::q5_0, {32, 64, 6}));
  ASSERT_TRUE(planned.map.ok()) << planned.map.error().message;
  EXPECT_EQ((*planned).dense.embedding.row_bytes, 2u * 34);
  EXPECT_EQ((*planned).dense.layers[0].attention.value.weight.row_bytes, 2u * 64);
  EXPECT_EQ((*planned).experts[0].parts()[0].first_expert.bytes, 32u * 2 * 18);
  EXPECT_EQ((*planned).experts[1].parts()[2].shape.row_bytes, 22u);
}

TEST(WeightMap, LeavesOutWhatNobodyUses) {
  const Planned planned =
      plan(ModelSketch().set_tensor("blk.2.nextn.eh_proj.weight", Dtype::iq2_s, {256, 64}));
  ASSERT_TRUE(planned.map.ok()) << planned.map.error().message;
  EXPECT_EQ((*planned).dense_tensors.size(), 3u + 2 * 9);
}

TEST(WeightMap, RefusesTensorsThatWouldChangeTheArithmetic) {
  for (const char* name :
       {"rope_factors_middle.weight", "blk.1.attn_gate.weight", "blk.0.ffn_exp_probs.bias"}) {
    const Planned planned = plan(ModelSketch().set_tensor(name, Dtype::f32, {8}));
    ASSERT_FALSE(planned.map.ok()) << name;
    EXPECT_EQ(planned.map.error().kind, ErrorKind::unsupported);
    EXPECT_NE(planned.map.error().message.find(name), std::string::npos);
  }
}

}  // namespace
}  // namespace sluice
