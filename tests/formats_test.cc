// Every block format as the weights of a whole model: in experts, attention, embedding and head.
// The same model with its weights decoded to floats says what the logits should be near to, and
// they have the same bits with any instruction set, number of threads, batch and cache.
#include <gtest/gtest.h>

#include <cmath>
#include <deque>

#include "base/random.h"
#include "engine/engine.h"
#include "kernels/kernels.h"
#include "testing/moderate_blocks.h"
#include "testing/temp_folder.h"
#include "tests/support/model_bytes.h"

namespace sluice {
namespace {

const std::string kModel = SLUICE_SOURCE_DIR "/tests/data/cases/qwen3moe-q4_k_m/model.gguf";

struct TwinPaths {
  std::string stored;   ///< all matrices in a format
  std::string decoded;  ///< the same weights as F32
};

/// Matrices but the router, whose choice should not hang on roundings.
bool is_matrix(const gguf::Tensor& tensor) {
  return tensor.shape.size() >= 2 && !tensor.name.ends_with("ffn_gate_inp.weight");
}

/// A model in the shape of kModel, its matrices random, every expert used by every token.
TwinPaths write_twins(Dtype dtype, const std::string& folder) {
  const auto model = ModelBytes::open(kModel);
  const std::string prefix = std::string(model->config().architecture->name);
  const DtypeInfo& info = dtype_info(dtype);
  gguf::GgufWriter stored, decoded;
  for (gguf::GgufWriter* writer : {&stored, &decoded}) {
    copy_keys(model->header(), *writer, {prefix + ".expert_used_count"});
    writer->set(prefix + ".expert_used_count", model->config().expert_count);
  }
  std::deque<std::vector<std::byte>> contents;  // the writers keep spans of them
  uint64_t seed = 0;
  for (const gguf::Tensor& tensor : model->header().tensors()) {
    if (!is_matrix(tensor)) {
      for (gguf::GgufWriter* writer : {&stored, &decoded})
        writer->add_tensor(tensor.name, tensor.dtype, tensor.shape, model->bytes_of(tensor.extent));
      continue;
    }
    uint64_t elements = 1;
    for (const uint64_t extent : tensor.shape) elements *= extent;
    const uint64_t blocks = elements / info.block_elements;
    const auto& bytes = contents.emplace_back(moderate_blocks(dtype, blocks, seed += 1'000'000));
    auto& floats = contents.emplace_back(elements * sizeof(float));
    info.decode(bytes.data(), blocks, reinterpret_cast<float*>(floats.data()));
    stored.add_tensor(tensor.name, dtype, tensor.shape, bytes);
    decoded.add_tensor(tensor.name, Dtype::f32, tensor.shape, floats);
  }
  const TwinPaths paths = {folder + "/stored.gguf", folder + "/decoded.gguf"};
  CHECK(stored.write(paths.stored).ok() && decoded.write(paths.decoded).ok());
  return paths;
}

struct Way {
  std::string isa = "auto";
  uint32_t threads = 2;
  uint32_t slots_per_layer = 0;  ///< 0: what the budget leaves
  bool one_by_one = false;
};

std::vector<float> logits_of(const std::string& path, const Way& way) {
  EngineOptions options;
  options.isa = way.isa;
  options.threads = way.threads;
  options.context_tokens = 64;
  if (way.slots_per_layer > 0) options.cache.slots_per_layer = way.slots_per_layer;
  const auto engine = Engine::open(path, options, Log(LogLevel::quiet), nullptr);
  CHECK(engine.ok());
  const auto session = (*engine)->new_session();
  CHECK(session.ok());
  Random random(5);
  std::vector<int32_t> tokens(19);
  for (int32_t& token : tokens) token = static_cast<int32_t>(random.below(256));
  const size_t step = way.one_by_one ? 1 : tokens.size();
  for (size_t first = 0; first < tokens.size(); first += step)
    CHECK((*session)->prefill(std::span(tokens).subspan(first, step)).ok());
  const auto logits = (*session)->logits();
  return {logits.begin(), logits.end()};
}

double relative_rms_difference(std::span<const float> a, std::span<const float> b) {
  double difference = 0, total = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference += (double{a[i]} - b[i]) * (double{a[i]} - b[i]);
    total += double{b[i]} * b[i];
  }
  return std::sqrt(difference / total);
}

class Formats : public testing::TestWithParam<Dtype> {};

/// Activations of eight bits are all that separates the two: half a percent a product, which layers
/// of random weights make up to nine. With other weights it would be above a hundred.
TEST_P(Formats, AWholeModelIsNearItsFloatsAndTheSameEveryWay) {
  const TempFolder folder;
  const TwinPaths paths = write_twins(GetParam(), folder.path());
  const std::vector<float> logits = logits_of(paths.stored, {});
  for (const float logit : logits) ASSERT_TRUE(std::isfinite(logit));
  EXPECT_LE(relative_rms_difference(logits, logits_of(paths.decoded, {})), 0.15);
  EXPECT_EQ(logits, logits_of(paths.stored, {.isa = "ref", .threads = 1}));
  EXPECT_EQ(logits, logits_of(paths.stored, {.threads = 3, .one_by_one = true}));
  EXPECT_EQ(logits, logits_of(paths.stored, {.slots_per_layer = 1}));
  for (const kernels::Isa isa : kernels::usable_isas())
    EXPECT_EQ(logits, logits_of(paths.stored,
                                {.isa = std::string(kernels::isa_name(isa)), .one_by_one = true}));
}

std::vector<Dtype> decodable() {
  std::vector<Dtype> dtypes;
  for (uint32_t id = 0; id < kDtypeIdCount; ++id)
    if (const DtypeInfo* info = find_dtype(id); info != nullptr && info->decode != nullptr)
      dtypes.push_back(info->dtype);
  return dtypes;
}

INSTANTIATE_TEST_SUITE_P(Every, Formats, testing::ValuesIn(decodable()),
                         [](const testing::TestParamInfo<Dtype>& row) {
                           return std::string(dtype_info(row.param).name);
                         });

}  // namespace
}  // namespace sluice
