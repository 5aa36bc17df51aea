#include "model/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "testing/model_sketch.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

Result<ModelConfig> read(const ModelSketch& sketch) {
  return read_config(sketch.open(), Log(LogLevel::quiet));
}

void expect_error(const ModelSketch& sketch, ErrorKind kind, const std::string& part) {
  const auto config = read(sketch);
  ASSERT_FALSE(config.ok()) << "expected: " << part;
  EXPECT_EQ(config.error().kind, kind) << config.error().message;
  EXPECT_THAT(config.error().message, HasSubstr(part));
  EXPECT_EQ(config.error().message.find('\n'), std::string::npos);
}

std::string key(const std::string& name) {
  return "qwen3moe." + name;
}

TEST(Config, ReadsWhatTheKeysSay) {
  const auto config = read(ModelSketch().set("general.name", "a sketch"));
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->architecture->name, "qwen3moe");
  EXPECT_EQ(config->name, "a sketch");
  EXPECT_EQ(config->hidden_size, 64u);
  EXPECT_EQ(config->context_trained_tokens, 1000u);
  EXPECT_EQ(config->rms_epsilon, 1e-5f);
  EXPECT_EQ(config->layers[0].key_dim, 16u);
  EXPECT_EQ(config->ropes[0].rotated_dim, 16u);
  EXPECT_EQ(config->ropes[0].base, 1e6);
  EXPECT_EQ(config->expert_count, 6u);
  EXPECT_EQ(config->expert_used_count, 2u);
  EXPECT_EQ(config->expert_hidden_size, 32u);
  ASSERT_EQ(config->layer_count(), 2u);
  EXPECT_EQ(config->layers[1].head_count, 4u);
  EXPECT_EQ(config->layers[1].kv_head_count, 2u);
  EXPECT_EQ(config->gating.function, GatingFunction::softmax);
  EXPECT_TRUE(config->gating.renormalise);
  EXPECT_EQ(config->gating.scale, 1.0f);
  EXPECT_EQ(describe_router(*config),
            "softmax over 6 experts, 2 used, weights renormalised, scale 1");
}

TEST(Config, ADenseModelHasNoExpertsToCount) {
  for (ModelSketch sketch : {ModelSketch().erase_key(key("expert_count")),
                             ModelSketch().set(key("expert_count"), uint32_t{0})}) {
    sketch.erase_key(key("expert_used_count")).erase_key(key("expert_feed_forward_length"));
    const auto config = read(sketch.rename_architecture("qwen3"));
    ASSERT_TRUE(config.ok()) << config.error().message;
    EXPECT_EQ(config->architecture->query_key_norm, QueryKeyNorm::per_head);
    EXPECT_EQ(config->expert_count, 0u);
    EXPECT_EQ(config->expert_used_count, 0u);
    EXPECT_EQ(describe_router(*config), "none, all layers are dense");
  }
}

TEST(Config, ValuesMayBeShorterThanKeys) {
  const auto config = read(ModelSketch().set(key("attention.value_length"), uint32_t{8}));
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->layers[1].key_dim, 16u);
  EXPECT_EQ(config->layers[1].value_dim, 8u);
}

TEST(Config, CompletesWhatTheyDoNotSay) {
  const auto config = read(ModelSketch()
                               .erase_key(key("attention.key_length"))
                               .erase_key(key("attention.layer_norm_rms_epsilon"))
                               .erase_key(key("rope.freq_base"))
                               .set(key("rope.dimension_count"), uint32_t{8}));
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->layers[0].key_dim, 16u) << "hidden size over heads";
  EXPECT_EQ(config->ropes[0].rotated_dim, 8u);
  EXPECT_EQ(config->rms_epsilon, 1e-6f);
  EXPECT_EQ(config->ropes[0].base, 10'000.0);
  EXPECT_EQ(config->name, "");
}

TEST(Config, NamesEveryKeyThatIsMissing) {
  for (const char* name :
       {"block_count", "context_length", "embedding_length", "attention.head_count",
        "attention.head_count_kv", "expert_used_count", "expert_feed_forward_length"})
    expect_error(ModelSketch().erase_key(key(name)), ErrorKind::corrupt,
                 "key '" + key(name) + "' is missing");
  expect_error(ModelSketch().erase_key("general.architecture"), ErrorKind::corrupt,
               "key 'general.architecture' is missing");
}

TEST(Config, NamesAnArchitectureThatIsNotSupported) {
  expect_error(ModelSketch().set("general.architecture", "mamba"), ErrorKind::unsupported,
               "architecture 'mamba' is not supported; supported: qwen3moe, ");
}

TEST(Config, HeadsMayBeOneNumberOrOneForEachLayer) {
  const auto config = read(ModelSketch()
                               .set_array<uint32_t>(key("attention.head_count"), {4, 8})
                               .set_array<int32_t>(key("attention.head_count_kv"), {1, 4}));
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->layers[0].head_count, 4u);
  EXPECT_EQ(config->layers[1].head_count, 8u);
  EXPECT_EQ(config->layers[0].kv_head_count, 1u);
  EXPECT_EQ(config->layers[1].kv_head_count, 4u);
  expect_error(ModelSketch()
                   .set(key("block_count"), uint32_t{3})
                   .set_array<uint32_t>(key("attention.head_count"), {4, 8}),
               ErrorKind::corrupt, "'qwen3moe.attention.head_count' has 2 entries for 3 layers");
  expect_error(ModelSketch().set_array<uint32_t>(key("attention.head_count"), {}),
               ErrorKind::corrupt, "'qwen3moe.attention.head_count' is missing or empty");
}

TEST(Config, LayersThatPredictTheNextTokenAreLeftOut) {
  const auto config = read(ModelSketch()
                               .set(key("block_count"), uint32_t{3})
                               .set(key("nextn_predict_layers"), uint32_t{1})
                               .set_array<uint32_t>(key("attention.head_count"), {4, 8, 16}));
  ASSERT_TRUE(config.ok()) << config.error().message;
  ASSERT_EQ(config->layer_count(), 2u);
  EXPECT_EQ(config->layers[1].head_count, 8u);
  expect_error(ModelSketch().set(key("nextn_predict_layers"), uint32_t{2}), ErrorKind::corrupt,
               "'qwen3moe.nextn_predict_layers' leaves no layers");
}

TEST(Config, TheRouterFollowsItsKeys) {
  const auto config = read(ModelSketch()
                               .set(key("expert_gating_func"), uint32_t{1})
                               .set(key("expert_weights_norm"), false)
                               .set(key("expert_weights_scale"), 2.5f));
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_FALSE(config->gating.renormalise);
  EXPECT_EQ(config->gating.scale, 2.5f);
  EXPECT_EQ(describe_router(*config), "softmax over 6 experts, 2 used, scale 2.5");

  const auto zero = read(ModelSketch().set(key("expert_weights_scale"), 0.0f));
  ASSERT_TRUE(zero.ok());
  EXPECT_EQ(zero->gating.scale, 1.0f) << "zero means that there is none";
  const auto sigmoid = read(ModelSketch().set(key("expert_gating_func"), uint32_t{2}));
  ASSERT_TRUE(sigmoid.ok());
  EXPECT_EQ(sigmoid->gating.function, GatingFunction::sigmoid);
  expect_error(ModelSketch().set(key("expert_gating_func"), uint32_t{7}), ErrorKind::unsupported,
               "'qwen3moe.expert_gating_func' is 7; supported: 1 to 3");
}

TEST(Config, ExpertsMayBeLimitedToGroups) {
  const auto groups = [](uint32_t count, uint32_t used) {
    return ModelSketch()
        .set(key("expert_group_count"), count)
        .set(key("expert_group_used_count"), used);
  };
  const auto config = read(groups(3, 2));
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->gating.group_count, 3u);
  EXPECT_EQ(config->gating.group_used_count, 2u);
  EXPECT_EQ(describe_router(*config),
            "softmax over 6 experts in 3 groups (2 of them eligible), 2 used, weights "
            "renormalised, scale 1");
  EXPECT_EQ(read(groups(1, 1))->gating.group_count, 1u);
  EXPECT_EQ(read(groups(0, 0))->gating.group_count, 1u) << "zero means that there are none";
  expect_error(groups(4, 1), ErrorKind::corrupt, "1 of 4 groups cannot give 2 of 6 experts");
  expect_error(groups(6, 2), ErrorKind::corrupt, "2 of 6 groups");  // of one expert each
  expect_error(groups(2, 3), ErrorKind::corrupt, "3 of 2 groups");
}

ModelSketch sketch_of(const std::string& architecture) {
  return ModelSketch().rename_architecture(architecture);
}

TEST(Config, FactorsApplyWhereTheFamilyHasThem) {
  const auto with_factors = [](const std::string& name) {
    return sketch_of(name)
        .set(name + ".embedding_scale", 12.0f)
        .set(name + ".residual_scale", 0.5f)
        .set(name + ".attention.scale", 0.125f)
        .set(name + ".logit_scale", 6.0f);
  };
  const auto config = read(with_factors("granitemoe"));
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->embedding_scale, 12.0f);
  EXPECT_EQ(config->residual_scale, 0.5f);
  EXPECT_EQ(config->attention_scale, 0.125f);
  EXPECT_EQ(config->logit_scale, 6.0f);
  const auto none = read(sketch_of("granitemoe"));
  EXPECT_EQ(none->residual_scale, 1.0f);
  EXPECT_EQ(none->attention_scale, 0.25f) << "1 / √16";
  expect_error(with_factors("qwen3moe"), ErrorKind::unsupported, "key 'qwen3moe.");
}

TEST(Config, SomeFamiliesGiveExpertsTheWidthOfTheFfn) {
  const auto config = read(sketch_of("olmoe")
                               .erase_key("olmoe.expert_feed_forward_length")
                               .set("olmoe.feed_forward_length", uint32_t{48}));
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->expert_hidden_size, 48u);
}

TEST(Config, RopeMayBeScaled) {
  EXPECT_EQ(read(ModelSketch())->ropes[0].scaling, RopeScaling::none);
  EXPECT_EQ(read(ModelSketch().set(key("rope.scaling.type"), "none"))->ropes[0].scaling,
            RopeScaling::none);
  EXPECT_EQ(read(ModelSketch().set(key("rope.scaling.factor"), 1.0f))->ropes[0].scaling,
            RopeScaling::none);
  const auto linear = read(ModelSketch().set(key("rope.scale_linear"), 2.0f));
  EXPECT_EQ(linear->ropes[0].scaling, RopeScaling::linear);
  EXPECT_EQ(linear->ropes[0].factor, 2.0);
  const auto yarn = read(ModelSketch()
                             .set(key("rope.scaling.type"), "yarn")
                             .set(key("rope.scaling.factor"), 4.0f)
                             .set(key("rope.scaling.yarn_beta_fast"), 16.0f));
  ASSERT_TRUE(yarn.ok()) << yarn.error().message;
  EXPECT_EQ(yarn->ropes[0].scaling, RopeScaling::yarn);
  EXPECT_EQ(yarn->ropes[0].original_context_tokens, 1000u) << "what the model was trained with";
  EXPECT_EQ(yarn->ropes[0].beta_fast, 16.0);
  EXPECT_EQ(yarn->ropes[0].beta_slow, 1.0);
  expect_error(ModelSketch().set(key("rope.scaling.factor"), -4.0f), ErrorKind::corrupt,
               "'qwen3moe.rope.scaling.factor' is negative");
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

TEST(Config, RefusesWhatWouldChangeTheArithmetic) {
  const std::string window = key("attention.sliding_window");
  expect_error(ModelSketch().set(window, uint32_t{1}), ErrorKind::unsupported,
               "key '" + window + "'");
  EXPECT_TRUE(read(ModelSketch().set(window, uint32_t{0})).ok()) << "switched off";
  for (const char* name :
       {"final_logit_softcapping", "rope.scaling.yarn_log_multiplier",
        "attention.temperature_scale", "rope.freq_base_swa", "expert_group_scale"})
    expect_error(ModelSketch().set(key(name), 30.0f), ErrorKind::unsupported,
                 "key '" + key(name) + "'");
  expect_error(ModelSketch().set(key("rope.scaling.type"), "longrope"), ErrorKind::unsupported,
               "'qwen3moe.rope.scaling.type' is 'longrope'; supported: none, linear, yarn");
  EXPECT_TRUE(read(ModelSketch().set(key("something_new"), uint32_t{8})).ok())
      << "a key that nobody has heard of is noted only";
}

TEST(Config, RefusesAbsurdNumbers) {
  const std::vector<uint64_t> absurd{0, uint64_t{1} << 32, (uint64_t{1} << 32) + 4,
                                     uint64_t{1} << 63, ~uint64_t{0}};
  for (const char* name :
       {"block_count", "context_length", "embedding_length", "attention.head_count",
        "attention.head_count_kv", "attention.key_length", "expert_count", "expert_used_count",
        "expert_feed_forward_length"}) {
    for (const uint64_t number : absurd) {
      if (number == 0 && name == std::string_view("expert_count")) continue;  // a dense model
      expect_error(ModelSketch().set(key(name), number), ErrorKind::corrupt,
                   "key '" + key(name) + "' is " + std::to_string(number));
    }
    expect_error(ModelSketch().set(key(name), int32_t{-1}), ErrorKind::corrupt, key(name));
    expect_error(ModelSketch().set(key(name), "many"), ErrorKind::corrupt, key(name));
  }
  for (const uint64_t number : absurd) {
    expect_error(ModelSketch().set_array<uint64_t>(key("attention.head_count"), {4, number}),
                 ErrorKind::corrupt, "key 'qwen3moe.attention.head_count' is");
    expect_error(ModelSketch().set_array<uint64_t>(key("attention.head_count_kv"), {number, 2}),
                 ErrorKind::corrupt, "key 'qwen3moe.attention.head_count_kv' is");
  }
}

TEST(Config, RefusesNumbersThatContradictEachOther) {
  expect_error(ModelSketch().set(key("attention.head_count_kv"), uint32_t{3}), ErrorKind::corrupt,
               "layer 0 has 4 heads over 3 key/value heads");
  expect_error(ModelSketch().set(key("expert_used_count"), uint32_t{7}), ErrorKind::corrupt,
               "7 of 6 experts used per token");
  expect_error(ModelSketch().set(key("rope.dimension_count"), uint32_t{18}), ErrorKind::corrupt,
               "'qwen3moe.rope.dimension_count' is 18 for heads of 16");
  expect_error(ModelSketch().set(key("rope.dimension_count"), uint32_t{7}), ErrorKind::corrupt,
               "'qwen3moe.rope.dimension_count' is 7");
}

TEST(Config, RefusesFloatsThatAreNone) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const char* name :
       {"rope.freq_base", "attention.layer_norm_rms_epsilon", "expert_weights_scale"}) {
    expect_error(ModelSketch().set(key(name), nan), ErrorKind::corrupt,
                 "key '" + key(name) + "' is not a usable number");
    expect_error(ModelSketch().set(key(name), 1e300), ErrorKind::corrupt, key(name));
    expect_error(ModelSketch().set(key(name), "small"), ErrorKind::corrupt, key(name));
  }
  for (const float base : {0.0f, -1.0f})
    expect_error(ModelSketch().set(key("rope.freq_base"), base), ErrorKind::corrupt,
                 "'qwen3moe.rope.freq_base' is not above 1");
  expect_error(ModelSketch().set(key("attention.layer_norm_rms_epsilon"), -1.0f),
               ErrorKind::corrupt, "'qwen3moe.attention.layer_norm_rms_epsilon' is negative");
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
}

}  // namespace
}  // namespace sluice
