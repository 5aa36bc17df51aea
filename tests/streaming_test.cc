// Streaming never alters the output: the logits of a token depend on the model file, the tokens
// before it and the KV format, and to the last bit on nothing else (docs/numerics.md). Each setting
// is tried alone, then many of them drawn together.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/random.h"
#include "engine/engine.h"
#include "engine/generate.h"
#include "testing/temp_folder.h"

namespace sluice {
namespace {

/// Options as they would be typed.
using Settings = std::vector<std::pair<std::string, std::string>>;

std::string to_text(const Settings& settings) {
  std::string text;
  for (const auto& [name, value] : settings) text += name + " " + value + " ";
  return text;
}

Result<std::unique_ptr<Engine>> open(const std::string& path, const Settings& settings) {
  EngineOptions options;
  for (const auto& [name, value] : settings) {
    const Status set = set_option(options, name, value);
    CHECK(set.ok());
  }
  return Engine::open(path, options, Log(LogLevel::quiet), nullptr);
}

/// The hash of the logits of all positions: `prompt_count` tokens at once, the others one by one.
Result<std::string> logits_hash(Engine& engine, std::span<const int32_t> tokens,
                                size_t prompt_count) {
  auto session = engine.new_session();
  if (!session) return session.error();
  Hash128 hash;
  const auto receive = [&](std::span<const float> rows, size_t) { hash.add(rows); };
  if (prompt_count > 0)
    if (Status done = (*session)->prefill(tokens.first(prompt_count), receive); !done)
      return done.error();
  for (const int32_t token : tokens.subspan(prompt_count)) {
    if (Status done = (*session)->decode(token); !done) return done.error();
    hash.add((*session)->logits());
  }
  return hash.hex();
}

struct Model {
  std::string name;
  std::string path;
  size_t vocabulary_size;
  size_t token_count;
  uint32_t used_count;
  uint32_t expert_count;

  std::vector<int32_t> tokens() const {
    Random random(7);
    std::vector<int32_t> result(token_count);
    for (int32_t& token : result) token = static_cast<int32_t>(random.below(vocabulary_size));
    return result;
  }
};

const Model kFloats{.name = "floats",
                    .path = SLUICE_SOURCE_DIR "/tests/data/cases/qwen3moe/model.gguf",
                    .vocabulary_size = 256,
                    .token_count = 40,
                    .used_count = 4,
                    .expert_count = 16};
const Model kShards{
    .name = "shards",
    .path = SLUICE_SOURCE_DIR "/tests/data/cases/qwen3moe-split3/model-00002-of-00003.gguf",
    .vocabulary_size = 256,
    .token_count = 40,
    .used_count = 2,
    .expert_count = 4};
const Model kDemo{.name = "demo",
                  .path = SLUICE_SOURCE_DIR "/models/demo-q4_k_m.gguf",
                  .vocabulary_size = 2000,
                  .token_count = 48,
                  .used_count = 4,
                  .expert_count = 32};

/// For the names of failed tests.
void PrintTo(const Model& model, std::ostream* out) {
  *out << model.name;
}

class StreamingTest : public ::testing::TestWithParam<std::tuple<Model, std::string>> {
 protected:
  void SetUp() override {
    const auto engine = open(model_.path, with({}));
    ASSERT_TRUE(engine.ok()) << engine.error().message;
    ASSERT_EQ((*engine)->facts().expert_count, model_.expert_count);
    ASSERT_EQ((*engine)->facts().expert_used_count, model_.used_count);
    ASSERT_GE((*engine)->facts().vocabulary_size, model_.vocabulary_size);
    const auto hash = logits_hash(**engine, tokens_, tokens_.size());
    ASSERT_TRUE(hash.ok()) << hash.error().message;
    expected_ = *hash;
  }

  Settings with(Settings settings) const {
    settings.insert(settings.begin(), {"--kv", std::get<1>(GetParam())});
    settings.insert(settings.begin(), {"--ctx", "128"});
    settings.insert(settings.begin(), {"--moe-stream-census", "off"});  // a setting may name one
    return settings;
  }

  /// Runs with these settings, prompt and steps cut at different places.
  void expect_same(const Settings& settings, std::vector<size_t> prompt_counts) {
    SCOPED_TRACE(to_text(settings));
    const auto engine = open(model_.path, with(settings));
    ASSERT_TRUE(engine.ok()) << engine.error().message;
    for (const size_t count : prompt_counts) {
      const auto hash = logits_hash(**engine, tokens_, count);
      ASSERT_TRUE(hash.ok()) << hash.error().message;
      EXPECT_EQ(*hash, expected_) << "prompt of " << count;
    }
    const MoeCounters moe = (*engine)->counters();
    EXPECT_EQ(moe.lookups, moe.hits + moe.joins + moe.misses);
  }
  void expect_same(const Settings& settings) {
    expect_same(settings, {tokens_.size(), tokens_.size() / 2});
  }
  /// For what a system may refuse.
  void expect_same_if_possible(const Settings& settings) {
    if (const auto engine = open(model_.path, with(settings)); engine.ok()) expect_same(settings);
  }

  std::string slots(uint64_t count) const { return std::to_string(count) + "s"; }

  const Model model_ = std::get<0>(GetParam());
  const std::vector<int32_t> tokens_ = model_.tokens();
  std::string expected_;
};

/// The prompt may end anywhere: each token's logits are the same in a batch and alone.
TEST_P(StreamingTest, PromptAndSteps) {
  std::vector<size_t> prompt_counts;
  for (size_t count = 0; count <= tokens_.size(); count += 6) prompt_counts.push_back(count);
  expect_same({{"--moe-stream-cache", slots(model_.used_count)}}, prompt_counts);
}

TEST_P(StreamingTest, Threads) {
  for (const char* count : {"1", "2", "3", "4"}) expect_same({{"--threads", count}});
}

TEST_P(StreamingTest, InstructionSets) {
  std::string names = usable_isa_names() + " ";
  for (size_t end; (end = names.find(' ')) != std::string::npos; names.erase(0, end + 1))
    expect_same({{"--isa", names.substr(0, end)}});
}

TEST_P(StreamingTest, PromptInPieces) {
  for (const char* tokens : {"1", "7", "32", "512"}) expect_same({{"--ubatch", tokens}});
}

/// From the experts of one token, when every layer goes in waves, to all of them.
TEST_P(StreamingTest, EverySizeOfTheCache) {
  for (uint32_t count = model_.used_count; count <= model_.expert_count; count += count < 8 ? 1 : 5)
    expect_same({{"--moe-stream-cache", slots(count)}});
  expect_same({{"--moe-stream-cache", slots(model_.expert_count)}});
  expect_same({{"--moe-stream-cache", slots(1)}});
  expect_same({{"--moe-stream", "off"}});
}

TEST_P(StreamingTest, WaysOfReading) {
  const std::string few = slots(model_.used_count);
  for (const char* io : {"uring", "threads"})
    for (const char* direct : {"on", "off"})
      expect_same_if_possible(
          {{"--moe-stream-cache", few}, {"--moe-stream-io", io}, {"--moe-stream-direct", direct}});
  for (const char* threads : {"1", "32"})
    expect_same({{"--moe-stream-cache", few},
                 {"--moe-stream-io", "threads"},
                 {"--moe-stream-io-threads", threads}});
}

TEST_P(StreamingTest, WhoLeavesFirst) {
  for (const uint32_t count : {model_.used_count, model_.expert_count / 2}) {
    for (const char* evict : {"lru", "contest"})
      expect_same({{"--moe-stream-cache", slots(count)}, {"--moe-stream-evict", evict}});
    for (const char* half_life : {"1", "7", "1000"})
      expect_same({{"--moe-stream-cache", slots(count)},
                   {"--moe-stream-evict", "decay"},
                   {"--moe-stream-half-life", half_life}});
  }
}

/// From the experts of one token, when layers push each other's experts out all the time; fewer are
/// not to be had.
TEST_P(StreamingTest, EverySizeOfTheRing) {
  for (uint32_t count = model_.used_count; count <= 4 * model_.expert_count; count += count)
    for (const char* evict : {"decay", "lru", "contest"})
      expect_same({{"--moe-stream-pool", "ring"},
                   {"--moe-stream-ring", std::to_string(count)},
                   {"--moe-stream-evict", evict}});
  expect_same({{"--moe-stream-pool", "ring"}, {"--moe-stream-ring", "1"}});
  expect_same({{"--moe-stream-pool", "ring"}});
}

/// The governor's way depends on the time of day; off, everything is guessed that may be.
TEST_P(StreamingTest, LookingAhead) {
  for (const char* layers : {"0", "1", "2", "3"}) {
    for (const char* width : {"0", "1", "64"})
      expect_same({{"--moe-stream-cache", slots(model_.used_count)},
                   {"--moe-stream-governor", "off"},
                   {"--moe-stream-lookahead", layers},
                   {"--moe-stream-lookahead-width", width}},
                  {4});
    expect_same({{"--moe-stream-cache", slots(model_.used_count)},
                 {"--moe-stream-lookahead", layers},
                 {"--moe-stream-lookahead-first", "off"}},
                {4});
  }
}

TEST_P(StreamingTest, RunnersUp) {
  for (const char* pool : {"layer", "ring"})
    for (const char* count : {"1", "3", "64"})
      expect_same({{"--moe-stream-cache", slots(model_.used_count + 1)},
                   {"--moe-stream-pool", pool},
                   {"--moe-stream-ring", std::to_string(3 * model_.used_count)},
                   {"--moe-stream-spec", count}},
                  {4});
}

TEST_P(StreamingTest, PiecesOfPrefetches) {
  for (const char* chunk : {"64K", "192K", "1M"})
    for (const char* cap : {"1", "4"})
      expect_same({{"--moe-stream-cache", slots(model_.used_count)},
                   {"--moe-stream-governor", "off"},
                   {"--moe-stream-chunk", chunk},
                   {"--moe-stream-prefetch-cap", cap},
                   {"--moe-stream-prefetch-cap-demand", cap == std::string("1") ? "0" : "2"}},
                  {4});
}

/// A census is learned, kept, and read before the next first token.
TEST_P(StreamingTest, TheCensusAndWhatItWarms) {
  const TempFolder folder;
  const std::string census = folder.path() + "/uses.census";
  for (const char* pool : {"layer", "ring", "layer"})
    for (const char* prewarm : {"on", "off"})
      expect_same({{"--moe-stream-cache", slots(model_.expert_count / 2 + 1)},
                   {"--moe-stream-pool", pool},
                   {"--moe-stream-ring", std::to_string(2 * model_.expert_count)},
                   {"--moe-stream-census", census},
                   {"--moe-stream-prewarm", prewarm}});
}

TEST_P(StreamingTest, ATraceIsWritten) {
  const TempFolder folder;
  expect_same({{"--moe-stream-cache", slots(model_.used_count)},
               {"--moe-stream-governor", "off"},
               {"--moe-stream-trace", folder.path() + "/routing.trace"},
               {"--moe-stream-trace-scores", "on"}});
}

TEST_P(StreamingTest, AllTogether) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    Random random(seed);
    const auto one_of = [&](std::initializer_list<const char*> values) {
      return std::string(values.begin()[random.below(values.size())]);
    };
    const uint64_t range = model_.expert_count - model_.used_count + 1;
    const Settings settings{
        {"--threads", one_of({"1", "2", "3", "4"})},
        {"--isa", one_of({"auto", "ref"})},
        {"--ubatch", one_of({"1", "3", "16", "17", "64"})},
        {"--moe-stream-cache", slots(model_.used_count + random.below(range))},
        {"--moe-stream-io", one_of({"auto", "threads"})},
        {"--moe-stream-direct", one_of({"auto", "off"})},
        {"--moe-stream-pool", one_of({"layer", "ring"})},
        {"--moe-stream-ring", std::to_string(model_.used_count + random.below(40))},
        {"--moe-stream-evict", one_of({"decay", "lru", "contest"})},
        {"--moe-stream-half-life", one_of({"1", "64"})},
        {"--moe-stream-chunk", one_of({"64K", "512K"})},
        {"--moe-stream-lookahead", one_of({"0", "1", "2", "3"})},
        {"--moe-stream-governor", one_of({"on", "off"})},
        {"--moe-stream-spec", one_of({"0", "2"})}};
    expect_same(settings, {random.below(tokens_.size() + 1), tokens_.size()});
  }
}

std::string model_and_kv(const ::testing::TestParamInfo<StreamingTest::ParamType>& test) {
  return std::get<0>(test.param).name + "_" + std::get<1>(test.param);
}

INSTANTIATE_TEST_SUITE_P(Models, StreamingTest,
                         ::testing::Combine(::testing::Values(kFloats, kShards, kDemo),
                                            ::testing::Values("f32", "f16")),
                         model_and_kv);
INSTANTIATE_TEST_SUITE_P(QuantisedKv, StreamingTest,
                         ::testing::Combine(::testing::Values(kFloats, kDemo),
                                            ::testing::Values("q8_0")),
                         model_and_kv);

/// A prompt so long that its experts are read layers ahead, and that it goes in several batches.
TEST(Streaming, ThePromptThatReadsAhead) {
  constexpr size_t kTokens = 4300;
  Random random(3);
  std::vector<int32_t> tokens(kTokens);
  for (int32_t& token : tokens) token = static_cast<int32_t>(random.below(256));
  std::string expected;
  const std::vector<Settings> all{{{"--moe-stream", "off"}},
                                  {{"--moe-stream-cache", "4s"}},
                                  {{"--moe-stream-cache", "6s"}, {"--moe-stream-readahead", "8"}},
                                  {{"--moe-stream-cache", "16s"}, {"--moe-stream-readahead", "1"}},
                                  {{"--moe-stream-cache", "8s"}, {"--moe-stream-readahead", "0"}},
                                  {{"--moe-stream-pool", "ring"}, {"--moe-stream-ring", "20"}}};
  for (Settings settings : all) {
    SCOPED_TRACE(to_text(settings));
    settings.insert(settings.end(), {{"--ctx", "4400"}, {"--moe-stream-census", "off"}});
    const auto engine = open(kFloats.path, settings);
    ASSERT_TRUE(engine.ok()) << engine.error().message;
    const auto hash = logits_hash(**engine, tokens, kTokens - 10);
    ASSERT_TRUE(hash.ok()) << hash.error().message;
    if (expected.empty()) expected = *hash;
    EXPECT_EQ(*hash, expected);
  }
}

/// The formats of the KV cache are an input: they must not give the same.
TEST(Streaming, TheKvFormatMatters) {
  std::set<std::string> hashes;
  for (const char* kv : {"f16", "f32", "q8_0"}) {
    const auto engine = open(kFloats.path, {{"--kv", kv}, {"--moe-stream-census", "off"}});
    ASSERT_TRUE(engine.ok());
    hashes.insert(*logits_hash(**engine, kFloats.tokens(), 10));
  }
  EXPECT_EQ(hashes.size(), 3u);
}

}  // namespace
}  // namespace sluice
