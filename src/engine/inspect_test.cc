#include "engine/inspect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "engine/engine.h"
#include "gguf/gguf_writer.h"
#include "testing/temp_folder.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string kModel = SLUICE_SOURCE_DIR "/models/demo-q4_k_m.gguf";

ModelReport inspected(const std::string& path) {
  auto report = inspect_model(path);
  CHECK(report.ok());
  return std::move(*report);
}

TEST(Inspect, DescribesTheDemoModel) {
  const ModelReport model = inspected(kModel);
  EXPECT_EQ(model.file_name, "demo-q4_k_m.gguf");
  EXPECT_EQ(model.architecture, "qwen3moe");
  EXPECT_EQ(model.cannot_run, "");
  EXPECT_EQ(model.version, 3u);
  ASSERT_EQ(model.shards.size(), 1u);
  EXPECT_EQ(model.shards[0].bytes, std::filesystem::file_size(kModel));
  EXPECT_EQ(model.file_bytes(), model.shards[0].bytes);
  EXPECT_EQ(model.vocabulary_tokens, 4096u);
  EXPECT_EQ(model.layer_count, 8u);
  EXPECT_EQ(model.context_trained_tokens, 512u);
  EXPECT_EQ(model.tensors.size(), 98u);
  EXPECT_EQ(model.used_count, 4u);
  // Keys and values of 2 heads of 64 in 8 layers.
  EXPECT_EQ(model.kv_f16.bytes_per_token, 8u * 2 * 2 * 64 * 2);
  EXPECT_EQ(model.kv_f32.bytes_per_token, 8u * 2 * 2 * 64 * 4);
  EXPECT_EQ(model.kv_q8_0.bytes_per_token, 8u * 2 * 2 * (64 + 2 * 2));
  EXPECT_EQ(model.kv_f16.fixed_bytes, 0u) << "no windows, no running states";

  const auto& experts = model.tensors;
  const auto down =
      std::ranges::find(experts, "blk.1.ffn_down_exps.weight", &ModelReport::TensorRow::name);
  ASSERT_NE(down, experts.end());
  EXPECT_EQ(down->type, "Q5_0");
  EXPECT_THAT(down->shape, ElementsAre(128, 256, 32));
  EXPECT_EQ(down->bytes, 128u * 256 * 32 / 32 * 22);
  EXPECT_EQ(down->residence, Residence::streamed);
}

TEST(Inspect, GivesTheBytesOfAnExpertLayerByLayer) {
  const ModelReport model = inspected(kModel);
  ASSERT_EQ(model.expert_layers.size(), 8u);
  const ModelReport::PartRow gate{"gate", "Q4_K", 128 * 256 / 256 * 144};
  const ModelReport::PartRow up{"up", "Q4_K", 128 * 256 / 256 * 144};
  const ModelReport::PartRow down_large{"down", "Q8_0", 128 * 256 / 32 * 34};
  const ModelReport::PartRow down_small{"down", "Q5_0", 128 * 256 / 32 * 22};
  for (uint32_t i = 0; i < 8; ++i) {
    const ModelReport::ExpertLayer& layer = model.expert_layers[i];
    const bool small = i == 1 || i == 2 || i == 4 || i == 5;
    EXPECT_EQ(layer.layer, i);
    EXPECT_EQ(layer.expert_count, 32u);
    EXPECT_THAT(layer.parts, ElementsAre(gate, up, small ? down_small : down_large)) << i;
    EXPECT_EQ(layer.expert_bytes(), small ? 59392u : 71680u);
  }
  EXPECT_EQ(model.bytes_per_token(), 4u * (4 * 59392 + 4 * 71680));
  EXPECT_EQ(model.cycle_experts(), 32u);
}

TEST(Inspect, AgreesWithTheLoadedEngine) {
  const ModelReport model = inspected(kModel);
  const auto engine = Engine::open(kModel, {}, Log(LogLevel::quiet), nullptr);
  ASSERT_TRUE(engine.ok());
  const ModelFacts& facts = (*engine)->facts();
  EXPECT_EQ(model.file_name, facts.file_name);
  EXPECT_EQ(model.router, facts.router);
  EXPECT_EQ(model.bytes_of(Residence::resident), facts.dense_bytes);
  EXPECT_EQ(model.bytes_of(Residence::streamed), facts.experts_bytes);
  EXPECT_EQ(model.bytes_of(Residence::unused), 0u);
  EXPECT_EQ(model.count_of(Residence::resident), 74u);
  EXPECT_EQ(model.count_of(Residence::streamed), 24u);
  EXPECT_EQ(model.bytes_per_token(), facts.expert_bytes_per_token);
  EXPECT_EQ(model.bytes_per_token() + model.dense_bytes_per_token, facts.active_bytes_per_token);
}

TEST(Inspect, TypesAndResidencesEachSumToAllTensors) {
  const ModelReport model = inspected(kModel);
  uint64_t bytes = 0;
  size_t count = 0;
  for (const auto& row : model.types) {
    bytes += row.bytes;
    count += row.tensor_count;
    EXPECT_TRUE(row.supported) << row.type;
  }
  EXPECT_EQ(count, model.tensors.size());
  EXPECT_EQ(bytes, model.bytes_of(Residence::resident) + model.bytes_of(Residence::streamed));
  EXPECT_TRUE(std::ranges::is_sorted(model.types, std::greater{}, &ModelReport::TypeRow::bytes));
}

/// A file of tensors full of zeros.
class MadeFile {
 public:
  explicit MadeFile(const std::string& architecture) {
    writer_.set("general.architecture", architecture);
    writer_.set(architecture + ".expert_used_count", uint32_t{2});
  }

  gguf::GgufWriter& writer() { return writer_; }
  void add(const std::string& name, Dtype dtype, std::vector<uint64_t> shape) {
    const auto zeros = [](uint64_t, std::span<std::byte> piece) -> Status {
      std::ranges::fill(piece, std::byte{0});
      return {};
    };
    writer_.add_tensor(name, dtype, std::move(shape), zeros);
  }
  ModelReport inspect() const {
    const std::string path = folder_.path() + "/made.gguf";
    CHECK(writer_.write(path).ok());
    return inspected(path);
  }

 private:
  TempFolder folder_;
  gguf::GgufWriter writer_;
};

TEST(Inspect, AnUnsupportedArchitectureIsListedAllTheSame) {
  MadeFile file("mammoth");
  file.add("token_embd.weight", Dtype::f16, {64, 100});
  file.add("blk.0.ffn_down.weight", Dtype::f32, {64, 32});  // a dense layer
  for (const std::string layer : {"3", "12"}) {
    const std::string prefix = "blk." + layer + ".ffn_";
    file.add(prefix + "down_exps.weight", Dtype::q8_0, {32, 64, 5});
    file.add(prefix + "gate_up_exps.weight", Dtype::q4_0, {64, 64, 5});
    file.add(prefix + "down_exps.bias", Dtype::f32, {64, 5});  // small: resident
  }
  const ModelReport model = file.inspect();
  EXPECT_EQ(model.architecture, "mammoth");
  EXPECT_THAT(model.cannot_run, HasSubstr("architecture 'mammoth' is not supported"));
  EXPECT_THAT(model.cannot_run, HasSubstr("qwen3moe"));
  ASSERT_EQ(model.expert_layers.size(), 2u);
  EXPECT_EQ(model.expert_layers[0].layer, 3u);
  EXPECT_EQ(model.expert_layers[1].layer, 12u);
  EXPECT_EQ(model.expert_layers[0].expert_count, 5u);
  EXPECT_THAT(model.expert_layers[1].parts,
              ElementsAre(ModelReport::PartRow{"gate_up", "Q4_0", 64 * 64 / 32 * 18},
                          ModelReport::PartRow{"down", "Q8_0", 32 * 64 / 32 * 34}));
  EXPECT_EQ(model.bytes_per_token(), 2u * 2 * (2304 + 2176));
  EXPECT_EQ(model.cycle_experts(), 4u);
  EXPECT_EQ(model.bytes_of(Residence::streamed), 2u * 5 * (2304 + 2176));
  EXPECT_EQ(model.bytes_of(Residence::resident), 64u * 100 * 2 + 64 * 32 * 4 + 2 * 64 * 5 * 4);
}

TEST(Inspect, AVocabularyOnlyFileSaysSo) {
  MadeFile file("qwen3moe");
  file.writer().set("tokenizer.ggml.model", "gpt2");
  file.writer().set_array("tokenizer.ggml.tokens", std::vector<std::string>{"a", "b", "c"});
  const ModelReport model = file.inspect();
  EXPECT_EQ(model.vocabulary_tokens, 3u);
  EXPECT_EQ(model.cannot_run, "it holds a vocabulary and no weights");
  EXPECT_THAT(model.tensors, IsEmpty());
  EXPECT_EQ(model.bytes_per_token(), 0u);
}

TEST(Inspect, AFileWithoutAnythingSaysSo) {
  EXPECT_EQ(MadeFile("mammoth").inspect().cannot_run, "it holds no weights");
}

TEST(Inspect, ATypeWithoutADecoderIsNamed) {
  MadeFile file("mammoth");
  file.add("blk.0.ffn_up_exps.weight", Dtype::f64, {256, 4, 2});
  file.add("output_norm.weight", Dtype::f32, {256});
  const ModelReport model = file.inspect();
  ASSERT_EQ(model.types.size(), 2u);
  EXPECT_EQ(model.types[0].type, "F64");
  EXPECT_FALSE(model.types[0].supported);
  EXPECT_TRUE(model.types[1].supported);
}

TEST(Inspect, TensorsOfExpertNameAndOtherShapeAreNotTakenForExperts) {
  MadeFile file("mammoth");
  file.add("blk.0.ffn_up_exps.weight", Dtype::f32, {32, 4});      // no third dimension
  file.add("blk.x.ffn_up_exps.weight", Dtype::f32, {32, 4, 2});   // no layer
  file.add("blk.1.attn_up_exps.weight", Dtype::f32, {32, 4, 2});  // no FFN
  const ModelReport model = file.inspect();
  EXPECT_THAT(model.expert_layers, IsEmpty());
  EXPECT_EQ(model.count_of(Residence::resident), 3u);
}

TEST(Inspect, AFolderIsNamedByItsFile) {
  EXPECT_EQ(inspected(SLUICE_SOURCE_DIR "/models").file_name, "demo-q4_k_m.gguf");
}

TEST(Inspect, WhatCannotBeReadIsAnError) {
  EXPECT_EQ(inspect_model("no such file").error().kind, ErrorKind::io);
  const TempFolder folder;
  const auto damaged = inspect_model(folder.write("x.gguf", std::string_view("GGUF\3\0\0\0", 8)));
  ASSERT_FALSE(damaged.ok());
  EXPECT_EQ(damaged.error().kind, ErrorKind::corrupt);
}

}  // namespace
}  // namespace sluice
