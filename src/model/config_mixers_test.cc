// What keys say of the layers' token mixers: windows, latent attention, recurrences.
#include <cmath>

#include "model/config_test.h"

namespace sluice {
namespace {

TEST(Config, TheFileMaySayWhichLayersHaveAWindow) {
  const std::string pattern = "gpt-oss.attention.sliding_window_pattern";
  const auto sketch = [] {
    return sketch_of("gpt-oss").set("gpt-oss.attention.sliding_window", uint32_t{128});
  };
  const auto words = read(sketch().set_array<bool>(pattern, {false, true}));
  ASSERT_TRUE(words.ok()) << words.error().message;
  EXPECT_EQ(words->layers[0].window, 0u);
  EXPECT_EQ(words->layers[1].window, 128u);
  const auto period = read(sketch().set(pattern, uint32_t{3}));
  EXPECT_EQ(period->layers[1].window, 128u) << "the third is the first without";
  expect_error(
      sketch().set("gpt-oss.block_count", uint32_t{3}).set_array<bool>(pattern, {false, true}),
      ErrorKind::corrupt, "'" + pattern + "' has 2 entries for 3 layers");
}

TEST(Config, LayersWithAWindowMayHaveAPaceAndHeadsOfTheirOwn) {
  const auto sketch = [] {
    return sketch_of("gemma4")
        .set("gemma4.attention.sliding_window", uint32_t{8})
        .set_array<bool>("gemma4.attention.sliding_window_pattern", {true, false})
        .set("gemma4.rope.freq_base_swa", 1e4f)
        .set("gemma4.attention.key_length_swa", uint32_t{8})
        .set("gemma4.attention.value_length_swa", uint32_t{8})
        .set("gemma4.final_logit_softcapping", 30.0f);
  };
  const auto config = read(sketch());
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->layers[0].key_dim, 8u);
  EXPECT_EQ(config->layers[0].value_dim, 8u);
  EXPECT_EQ(config->layers[1].key_dim, 16u);
  ASSERT_EQ(config->ropes.size(), 2u);
  EXPECT_EQ(config->ropes[config->layers[0].rope].base, 1e4);
  EXPECT_EQ(config->ropes[config->layers[0].rope].rotated_dim, 8u);
  EXPECT_EQ(config->ropes[config->layers[1].rope].base, 1e6);
  EXPECT_EQ(config->ropes[config->layers[1].rope].rotated_dim, 16u);
  EXPECT_EQ(config->attention_scale, 1.0f);
  EXPECT_EQ(config->embedding_scale, 8.0f) << "√64";
  EXPECT_EQ(config->logit_cap, 30.0f);
  expect_error(sketch().set("gemma4.rope.dimension_count_swa", uint32_t{10}), ErrorKind::corrupt,
               "'gemma4.rope.dimension_count_swa' is 10 for heads of 8");
  for (const char* name :
       {"gemma4.attention.shared_kv_layers", "gemma4.embedding_length_per_layer_input"}) {
    EXPECT_TRUE(read(sketch().set(name, uint32_t{0})).ok());
    expect_error(sketch().set(name, uint32_t{2}), ErrorKind::unsupported, name);
  }
}

TEST(Config, LayersMaySeeAWindow) {
  const auto config =
      read(sketch_of("gpt-oss").set("gpt-oss.attention.sliding_window", uint32_t{128}));
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->layers[0].window, 128u);
  EXPECT_EQ(config->layers[1].window, 0u);
  EXPECT_TRUE(config->layers[1].is_rotated);
}

TEST(Config, LayersThatSeeAllMayBeUnrotated) {
  const auto with_window = [](uint32_t window) {
    return read(sketch_of("smallthinker").set("smallthinker.attention.sliding_window", window));
  };
  const auto config = with_window(4096);
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_FALSE(config->layers[0].is_rotated);
  EXPECT_EQ(config->layers[0].window, 0u);
  EXPECT_TRUE(config->layers[1].is_rotated);
  EXPECT_EQ(config->layers[1].window, 4096u);
  EXPECT_TRUE(with_window(0)->layers[0].is_rotated) << "no windows, no such layers";
}

/// The sketch as a deepseek2 file of the newer kind.
ModelSketch latent_sketch() {
  return ModelSketch()
      .rename_architecture("deepseek2")
      .set("deepseek2.attention.head_count_kv", uint32_t{1})
      .set("deepseek2.attention.key_length", uint32_t{40})
      .set("deepseek2.attention.kv_lora_rank", uint32_t{32})
      .set("deepseek2.attention.q_lora_rank", uint32_t{24})
      .set("deepseek2.attention.key_length_mla", uint32_t{20})
      .set("deepseek2.attention.value_length_mla", uint32_t{12})
      .set("deepseek2.rope.dimension_count", uint32_t{8});
}

TEST(Config, LatentAttentionCachesOneKeyForAllHeads) {
  const auto config = read(latent_sketch());
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->latent.query_rank, 24u);
  EXPECT_EQ(config->latent.latent_dim, 32u);
  EXPECT_EQ(config->latent.unrotated_dim, 12u);
  EXPECT_EQ(config->latent.rotated_dim, 8u);
  EXPECT_EQ(config->latent.value_dim, 12u);
  const LayerConfig& layer = config->layers[1];
  EXPECT_EQ(layer.mixer, MixerKind::latent_attention);
  EXPECT_EQ(layer.head_count, 4u);
  EXPECT_EQ(layer.kv_head_count, 1u);
  EXPECT_EQ(layer.key_dim, 40u);
  EXPECT_EQ(layer.value_dim, 32u);
  EXPECT_FLOAT_EQ(config->attention_scale, 1 / std::sqrt(20.0f));
}

TEST(Config, OlderLatentFilesGiveTheSizesOfAHead) {
  const auto config = read(latent_sketch()
                               .erase_key("deepseek2.attention.key_length_mla")
                               .erase_key("deepseek2.attention.value_length_mla")
                               .erase_key("deepseek2.attention.q_lora_rank")
                               .set("deepseek2.attention.head_count_kv", uint32_t{4})
                               .set("deepseek2.attention.key_length", uint32_t{20})
                               .set("deepseek2.attention.value_length", uint32_t{12}));
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->latent.query_rank, 0u);
  EXPECT_EQ(config->latent.unrotated_dim, 12u);
  EXPECT_EQ(config->latent.value_dim, 12u);
  EXPECT_EQ(config->layers[0].kv_head_count, 1u);
}

TEST(Config, ALogMultiplierGrowsTheScaleInPlaceOfTheRotation) {
  const auto config = read(latent_sketch()
                               .set("deepseek2.rope.scaling.type", "yarn")
                               .set("deepseek2.rope.scaling.factor", 40.0f)
                               .set("deepseek2.rope.scaling.yarn_log_multiplier", 0.1f));
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_TRUE(config->ropes[0].keeps_magnitude);
  const double growth = 1 + 0.1 * std::log(40.0);
  EXPECT_NEAR(config->attention_scale, growth * growth / std::sqrt(20.0), 1e-6);
}

TEST(Config, ABiasForChoosingMeansSigmoidsWhereTheFileDoesNotSay) {
  EXPECT_EQ(read(latent_sketch())->gating.function, GatingFunction::softmax);
  const auto biased = [] {
    return latent_sketch().set_tensor("blk.0.exp_probs_b.bias", Dtype::f32, {6});
  };
  EXPECT_EQ(read(biased())->gating.function, GatingFunction::sigmoid);
  EXPECT_EQ(read(biased().set("deepseek2.expert_gating_func", uint32_t{1}))->gating.function,
            GatingFunction::softmax);
}

TEST(Config, RefusesLatentSizesThatDoNotFit) {
  expect_error(latent_sketch().erase_key("deepseek2.attention.kv_lora_rank"), ErrorKind::corrupt,
               "'deepseek2.attention.kv_lora_rank' is missing");
  expect_error(latent_sketch().set("deepseek2.attention.key_length_mla", uint32_t{8}),
               ErrorKind::corrupt, "8 of 8 dimensions of a head are rotated");
  expect_error(ModelSketch().set(key("attention.kv_lora_rank"), uint32_t{8}),
               ErrorKind::unsupported, "'qwen3moe.attention.kv_lora_rank'");
}

TEST(Config, QueriesGrowWithTheirPosition) {
  const auto config = read(latent_sketch().set("deepseek2.attention.temperature_scale", 0.0f));
  ASSERT_TRUE(config.ok()) << "zero switches it off";
  expect_error(latent_sketch().set("deepseek2.attention.temperature_scale", 0.1f),
               ErrorKind::unsupported, "'deepseek2.attention.temperature_scale'");
  const QueryTemperature temperature{.scale = 0.1, .length = 8};
  EXPECT_EQ(temperature.factor(7), 1.0f);
  EXPECT_FLOAT_EQ(temperature.factor(8), static_cast<float>(1 + 0.1 * std::log(2.0)));
  EXPECT_FLOAT_EQ(temperature.factor(31), static_cast<float>(1 + 0.1 * std::log(4.0)));
}

TEST(Config, LayersWithoutKeyHeadsAreConvolutionsWhereTheFamilyHasThem) {
  const auto convolving = [] {
    return ModelSketch()
        .rename_architecture("lfm2moe")
        .set_array("lfm2moe.attention.head_count_kv", std::vector<uint32_t>{0, 2})
        .set("lfm2moe.shortconv.l_cache", uint32_t{3});
  };
  const auto config = read(convolving());
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->convolution_width, 3u);
  EXPECT_EQ(config->layers[0].mixer, MixerKind::short_convolution);
  EXPECT_EQ(config->layers[0].state_floats, 2u * 64) << "the last two rows";
  EXPECT_EQ(config->layers[1].mixer, MixerKind::attention);
  EXPECT_EQ(config->layers[1].state_floats, 0u);
  expect_error(convolving().erase_key("lfm2moe.shortconv.l_cache"), ErrorKind::corrupt,
               "'lfm2moe.shortconv.l_cache' is missing");
  expect_error(ModelSketch().set_array(key("attention.head_count_kv"), std::vector<uint32_t>{0, 2}),
               ErrorKind::corrupt, "'qwen3moe.attention.head_count_kv' is 0 for layer 0");
}

/// The sketch as a file whose recurrent layers are gated delta nets.
ModelSketch delta_sketch(const std::string& family) {
  return ModelSketch()
      .rename_architecture(family)
      .set(family + ".ssm.conv_kernel", uint32_t{4})
      .set(family + ".ssm.state_size", uint32_t{20})
      .set(family + ".ssm.group_count", uint32_t{2})
      .set(family + ".ssm.time_step_rank", uint32_t{6})
      .set(family + ".ssm.inner_size", uint32_t{120});
}

TEST(Config, AllButEachSoManyLayersAreDeltaNets) {
  const auto config =
      read(delta_sketch("qwen3next").set("qwen3next.full_attention_interval", uint32_t{2}));
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->delta.key_channels(), 40u);
  EXPECT_EQ(config->delta.value_channels(), 120u);
  EXPECT_EQ(config->delta.channels(), 200u);
  EXPECT_EQ(config->delta.decay_bound, 0.0f);
  EXPECT_EQ(config->layers[0].mixer, MixerKind::delta_net);
  EXPECT_EQ(config->layers[0].kv_head_count, 0u);
  EXPECT_EQ(config->layers[0].state_floats, 6u * 20 * 32 + 3 * 200)
      << "states in whole tiles of 16 columns, and three rows of channels";
  EXPECT_EQ(config->layers[1].mixer, MixerKind::attention);
  EXPECT_EQ(config->layers[1].state_floats, 0u);
  const auto by_key =
      read(delta_sketch("qwen35moe")
               .set_array("qwen35moe.attention.recurrent_layers", std::vector<uint32_t>{0, 1}));
  ASSERT_TRUE(by_key.ok()) << by_key.error().message;
  EXPECT_EQ(by_key->layers[0].mixer, MixerKind::attention);
  EXPECT_EQ(by_key->layers[1].mixer, MixerKind::delta_net);
}

TEST(Config, RefusesDeltaNetsThatDoNotFit) {
  expect_error(delta_sketch("qwen3next").set("qwen3next.ssm.inner_size", uint32_t{64}),
               ErrorKind::corrupt, "'qwen3next.ssm.inner_size' = 64");
  expect_error(delta_sketch("qwen3next").erase_key("qwen3next.ssm.state_size"), ErrorKind::corrupt,
               "'qwen3next.ssm.state_size' is missing");
  expect_error(ModelSketch().set(key("ssm.conv_kernel"), uint32_t{4}), ErrorKind::unsupported,
               "'qwen3moe.ssm.conv_kernel'");
  expect_error(delta_sketch("qwen3next").set("qwen3next.kda.head_dim", uint32_t{4}),
               ErrorKind::unsupported, "'qwen3next.kda.head_dim'");
}

TEST(Config, RopeSectionsMustBePlainRotationForText) {
  const auto with = [](const std::vector<uint32_t>& sections) {
    return delta_sketch("qwen35moe")
        .set("qwen35moe.rope.dimension_count", uint32_t{8})
        .set_array("qwen35moe.rope.dimension_sections", sections);
  };
  EXPECT_TRUE(read(with({2, 1, 1, 0})).ok());
  expect_error(with({1, 1, 1, 0}), ErrorKind::unsupported, "leaves pairs of 8 without a position");
  expect_error(with({2, 1, 1, 1}), ErrorKind::unsupported, "qwen35moe.rope.dimension_sections");
  expect_error(
      ModelSketch().set_array(key("rope.dimension_sections"), std::vector<uint32_t>{8, 8, 8, 0}),
      ErrorKind::unsupported, "'qwen3moe.rope.dimension_sections'");
}

TEST(Config, KimiDeltaAttentionReplacesLayersWithoutKeyHeads) {
  const auto sketch = [] {
    return ModelSketch()
        .rename_architecture("bailingmoe3")
        .set_array("bailingmoe3.attention.head_count_kv", std::vector<uint32_t>{0, 1})
        .set("bailingmoe3.attention.kv_lora_rank", uint32_t{32})
        .set("bailingmoe3.attention.key_length_mla", uint32_t{20})
        .set("bailingmoe3.attention.value_length_mla", uint32_t{12})
        .set("bailingmoe3.rope.dimension_count", uint32_t{8})
        .set("bailingmoe3.ssm.conv_kernel", uint32_t{4})
        .set("bailingmoe3.kda.head_dim", uint32_t{16})
        .set("bailingmoe3.kda.gate_lower_bound", -5.0f)
        .set_array("bailingmoe3.swiglu_clamp_exp", std::vector<float>{0.0f, 0.5f});
  };
  const auto config = read(sketch());
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->layers[0].mixer, MixerKind::delta_net);
  EXPECT_EQ(config->layers[1].mixer, MixerKind::latent_attention);
  EXPECT_EQ(config->delta.value_head_count, 4u);
  EXPECT_EQ(config->delta.decay_bound, -5.0f);
  EXPECT_EQ(config->layers[1].expert_limit, 0.5f);
  EXPECT_EQ(config->layers[1].dense_limit, 0.0f);
  expect_error(sketch().set("bailingmoe3.kda.safe_gate", false), ErrorKind::unsupported,
               "'bailingmoe3.kda.safe_gate'");
  expect_error(sketch().set_array("bailingmoe3.swiglu_clamp_exp", std::vector<float>{0.0f, -1.0f}),
               ErrorKind::corrupt, "'bailingmoe3.swiglu_clamp_exp' is not a limit for layer 1");
  expect_error(sketch().set("bailingmoe3.attention.head_count", uint32_t{65536}),
               ErrorKind::corrupt,
               "'bailingmoe3.attention.head_count' is 65536, expected 1 to 1024");
}

}  // namespace
}  // namespace sluice
