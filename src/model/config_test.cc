#include "model/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
  for (const char* name : {"block_count", "context_length", "embedding_length",
                           "attention.head_count", "attention.head_count_kv", "expert_count",
                           "expert_used_count", "expert_feed_forward_length"})
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

TEST(Config, HowYarnMixesMayBeSaid) {
  const auto with = [](const char* type, float mix) {
    return read(ModelSketch()
                    .set(key("rope.scaling.type"), type)
                    .set(key("rope.scaling.factor"), 4.0f)
                    .set(key("rope.scaling.attn_factor"), 2.0f)
                    .set(key("rope.scaling.yarn_attn_factor"), 3.0f)
                    .set(key("rope.scaling.yarn_ext_factor"), mix));
  };
  const auto half = with("yarn", 0.5f);
  ASSERT_TRUE(half.ok()) << half.error().message;
  EXPECT_EQ(half->ropes[0].scaling, RopeScaling::yarn);
  EXPECT_EQ(half->ropes[0].mix, 0.5);
  EXPECT_EQ(half->ropes[0].magnitude, 2.0) << "the rest is what YaRN prescribes";
  const auto none = with("yarn", 0.0f);
  EXPECT_EQ(none->ropes[0].scaling, RopeScaling::linear);
  EXPECT_EQ(none->ropes[0].magnitude, 6.0);
  EXPECT_EQ(with("linear", 1.0f)->ropes[0].scaling, RopeScaling::yarn);
  EXPECT_EQ(with("yarn", -1.0f)->ropes[0].mix, 1.0) << "not said";
}

TEST(Config, LongRopeIsInItsDivisors) {
  const auto config = read(ModelSketch()
                               .set(key("rope.scaling.type"), "longrope")
                               .set(key("rope.scaling.attn_factor"), 1.25f)
                               .set(key("rope.scaling.original_context_length"), uint32_t{400}));
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->ropes[0].scaling, RopeScaling::none);
  EXPECT_EQ(config->ropes[0].magnitude, 1.25);
  EXPECT_EQ(config->ropes[0].original_context_tokens, 400u);
}

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
  expect_error(ModelSketch().set(key("rope.scaling.type"), "ntk"), ErrorKind::unsupported,
               "'qwen3moe.rope.scaling.type' is 'ntk'; supported: none, linear, yarn, longrope");
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
    for (const uint64_t number : absurd)
      expect_error(ModelSketch().set(key(name), number), ErrorKind::corrupt,
                   "key '" + key(name) + "' is " + std::to_string(number));
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

}  // namespace
}  // namespace sluice
