// Models whose layers keep less than all keys and values, whole and with random weights: windows in
// rings give the bits of a full cache, and a sequence that goes back, or was thrown back by a fault
// in the middle of a step, gives those of a fresh one.
#include <gtest/gtest.h>

#include "engine/engine.h"
#include "testing/model_sketch.h"
#include "testing/temp_folder.h"
#include "tests/support/hand_built_engine.h"

namespace sluice {
namespace {

constexpr KvType kKvTypes[] = {KvType::f16, KvType::f32, KvType::q8_0};
constexpr uint32_t kUsed = 2;  // experts of a token

/// Layer 0 sees a window, layer 1 everything.
ModelSketch windowed_sketch(uint32_t window) {
  ModelSketch sketch;
  sketch.rename_architecture("gpt-oss");
  sketch.set("gpt-oss.attention.sliding_window", window);
  for (const std::string layer : {"blk.0.", "blk.1."}) {
    for (const char* part : {"attn_q_norm", "attn_k_norm", "ffn_norm"})
      sketch.erase_tensor(layer + part + ".weight");
    sketch.set_tensor(layer + "post_attention_norm.weight", Dtype::f32, {64});
  }
  return sketch;
}

/// Layer 0 is a short convolution over four tokens, layer 1 attention.
ModelSketch recurrent_sketch() {
  ModelSketch sketch;
  sketch.rename_architecture("lfm2moe");
  sketch.set_array<uint32_t>("lfm2moe.attention.head_count_kv", {0, 2});
  sketch.set("lfm2moe.shortconv.l_cache", uint32_t{4});
  for (const char* part : {"q", "k", "v", "output", "q_norm", "k_norm"})
    sketch.erase_tensor(std::string("blk.0.attn_") + part + ".weight");
  sketch.set_tensor("blk.0.shortconv.in_proj.weight", Dtype::f32, {64, 192});
  sketch.set_tensor("blk.0.shortconv.conv.weight", Dtype::f32, {4, 64});
  sketch.set_tensor("blk.0.shortconv.out_proj.weight", Dtype::f32, {64, 64});
  sketch.erase_tensor("output_norm.weight");
  sketch.set_tensor("token_embd_norm.weight", Dtype::f32, {64});
  return sketch;
}

std::vector<int32_t> some_tokens(size_t count) {
  Random random(5);
  std::vector<int32_t> tokens(count);
  for (int32_t& token : tokens) token = static_cast<int32_t>(random.below(40));
  return tokens;
}

class GoingBack : public ::testing::Test {
 protected:
  static constexpr size_t kTokens = 420;
  static constexpr size_t kContext = 2000;

  std::unique_ptr<ModelBytes> model_of(const ModelSketch& sketch) const {
    const std::string path = folder_.path() + "/model.gguf";
    sketch.write_random(path, 3);
    return ModelBytes::open(path);
  }
  /// Pieces so small that a ring is much shorter than the tokens.
  static HandBuiltOptions small_pieces(KvType kv) {
    HandBuiltOptions options;
    options.kv = kv;
    options.context_tokens = kContext;
    options.batch_tokens = 48;
    options.ubatch_tokens = 13;
    options.slots_per_layer = kUsed;
    return options;
  }
  /// All in one piece: as many tokens as the context has, so that no window has a ring.
  std::vector<float> expected_of(const ModelBytes& model, KvType kv) {
    HandBuiltOptions options = small_pieces(kv);
    options.batch_tokens = options.ubatch_tokens = kContext;
    HandBuiltEngine engine(model, pool_, options);
    for (size_t layer = 0; layer < 2; ++layer)
      EXPECT_GE(engine.state().ring_positions(layer), kContext);
    auto logits = engine.append(tokens_);
    CHECK(logits.ok());
    return std::move(*logits);
  }
  /// Appends tokens [engine's position, end) and compares.
  void go_on_to(HandBuiltEngine& engine, size_t end, std::span<const float> expected,
                size_t vocabulary) {
    const size_t first = engine.position();
    const auto logits = engine.append(std::span(tokens_).subspan(first, end - first));
    ASSERT_TRUE(logits.ok()) << logits.error().message;
    ASSERT_TRUE(std::ranges::equal(
        *logits, expected.subspan(first * vocabulary, (end - first) * vocabulary)))
        << "tokens from " << first << " to " << end;
  }

  const TempFolder folder_;
  ComputePool pool_{2};
  const std::vector<int32_t> tokens_ = some_tokens(kTokens);
};

TEST_F(GoingBack, RingsGiveTheBitsOfAFullCache) {
  for (const uint32_t window : {1u, 8u, 63u, 64u, 65u, 200u})
    for (const KvType kv : kKvTypes) {
      SCOPED_TRACE(fmt::format("window {}, KV type {}", window, static_cast<int>(kv)));
      const auto model = model_of(windowed_sketch(window));
      const std::vector<float> expected = expected_of(*model, kv);
      const size_t vocabulary = model->config().vocabulary_size;
      HandBuiltEngine pieces(*model, pool_, small_pieces(kv));
      ASSERT_LT(pieces.state().ring_positions(0), kTokens);
      go_on_to(pieces, kTokens, expected, vocabulary);
      HandBuiltEngine steps(*model, pool_, small_pieces(kv));
      while (steps.position() < kTokens && !HasFailure())
        go_on_to(steps, steps.position() + 1, expected, vocabulary);
    }
}

TEST_F(GoingBack, ToEveryPositionGivesTheBitsOfAFreshSequence) {
  for (const ModelSketch& sketch : {windowed_sketch(8), windowed_sketch(65), recurrent_sketch()}) {
    const auto model = model_of(sketch);
    SCOPED_TRACE(model->config().architecture->name);
    const size_t vocabulary = model->config().vocabulary_size;
    const std::vector<float> expected = expected_of(*model, KvType::f16);
    size_t on_the_spot = 0, from_snapshot = 0, from_nothing = 0;
    HandBuiltEngine engine(*model, pool_, small_pieces(KvType::f16));
    for (size_t asked = 0; asked < 400 && !HasFailure(); asked += 9) {
      engine.reset();
      engine.state().plan_snapshot(137);
      go_on_to(engine, 390, expected, vocabulary);
      for (size_t end = 391; end < 400; ++end) go_on_to(engine, end, expected, vocabulary);
      const size_t there = engine.rewind(asked);
      ASSERT_LE(there, asked);
      on_the_spot += there == asked;
      from_snapshot += there == 137;
      from_nothing += there == 0;
      EXPECT_TRUE(there == asked || there == 137 || there == 0) << there;
      EXPECT_GE(there, asked >= 137 ? 137u : 0u);
      go_on_to(engine, std::min(asked + 30, kTokens), expected, vocabulary);
      go_on_to(engine, kTokens, expected, vocabulary);
    }
    const bool recurs = model->config().layers[0].state_floats > 0;
    EXPECT_GT(on_the_spot, recurs ? 0u : 3u);
    EXPECT_GT(from_snapshot, 20u);
    EXPECT_GT(from_nothing, 10u);
  }
}

/// A read breaks, or somebody interrupts, anywhere in a step of any length.
TEST_F(GoingBack, AFaultInTheMiddleOfAStepLeavesNoTrace) {
  size_t faults = 0, layers_lost = 0;
  for (const ModelSketch& sketch : {windowed_sketch(8), windowed_sketch(65), recurrent_sketch()}) {
    const auto model = model_of(sketch);
    SCOPED_TRACE(model->config().architecture->name);
    const size_t vocabulary = model->config().vocabulary_size;
    const std::vector<float> expected = expected_of(*model, KvType::q8_0);
    for (uint64_t seed = 1; seed <= 25 && !HasFailure(); ++seed) {
      SCOPED_TRACE(seed);
      Random random(seed);
      HandBuiltOptions options = small_pieces(KvType::q8_0);
      options.drive.seed = seed;
      options.drive.shares.broken = 0.002;
      options.step_tokens = 48 + random.below(200);
      HandBuiltEngine engine(*model, pool_, options);
      size_t pieces_left = 0;
      engine.routing().on_attention = [&](size_t) {
        if (pieces_left > 0 && --pieces_left == 0) engine.stop() = true;
      };
      while (engine.position() < kTokens && !HasFailure()) {
        const size_t before = engine.position();
        const size_t most = std::min<size_t>(random.below(3) == 0 ? 300 : 5, kTokens - before);
        const size_t end = before + 1 + random.below(most);
        if (end - before > 5) engine.state().plan_snapshot(before + random.below(end - before));
        pieces_left = random.below(8);
        while (true) {
          const auto logits = engine.append(std::span(tokens_).subspan(before, end - before));
          engine.stop() = false;
          if (logits.ok()) {
            ASSERT_TRUE(std::ranges::equal(
                *logits,
                std::span(expected).subspan(before * vocabulary, (end - before) * vocabulary)));
            break;
          }
          ++faults;
          ASSERT_EQ(engine.position(), before);
          layers_lost += engine.state().position() < before;
        }
      }
    }
  }
  EXPECT_GT(faults, 500u);
  EXPECT_GT(layers_lost, 100u) << "the test has met what it is about";
}

/// Sessions over files.
class SessionGoingBack : public GoingBack {
 protected:
  void open(ModelSketch sketch, EngineOptions options = {}) {
    std::vector<std::string> tokens;
    for (char c = '0'; tokens.size() < 40; ++c) tokens.emplace_back(1, c);
    sketch.set("tokenizer.ggml.model", "gpt2");
    sketch.set("tokenizer.ggml.pre", "qwen2");
    sketch.set_array("tokenizer.ggml.tokens", tokens);
    const std::string path = folder_.path() + "/session.gguf";
    sketch.write_random(path, 4);
    options.threads = 2;
    options.census = "off";
    session_.reset();
    opened_ = Engine::open(path, options, Log(LogLevel::quiet), &stop_);
    if (!opened_.ok()) return;
    auto session = (*opened_)->new_session();
    CHECK(session.ok());
    session_ = std::move(*session);
  }
  EngineOptions long_context() const {
    EngineOptions options;
    options.context_tokens = kContext;
    options.ubatch_tokens = 64;
    return options;
  }
  /// The logits behind the last of these tokens, in a session of their own.
  std::vector<float> fresh_logits(std::span<const int32_t> tokens) {
    auto session = (*opened_)->new_session();
    CHECK(session.ok());
    CHECK((*session)->prefill(tokens).ok());
    return {(*session)->logits().begin(), (*session)->logits().end()};
  }
  void expect_logits_of(std::span<const int32_t> tokens) {
    ASSERT_TRUE(std::ranges::equal(session_->tokens(), tokens));
    EXPECT_TRUE(std::ranges::equal(session_->logits(), fresh_logits(tokens)));
  }

  std::atomic<bool> stop_{false};
  Result<std::unique_ptr<Engine>> opened_ = make_error(ErrorKind::usage, "not opened");
  std::unique_ptr<Session> session_;
};

TEST_F(SessionGoingBack, APromptGoesOnFromAnEarlierOne) {
  for (const ModelSketch& sketch : {windowed_sketch(65), recurrent_sketch()}) {
    open(sketch, long_context());
    ASSERT_TRUE(opened_.ok()) << opened_.error().message;
    ASSERT_TRUE(session_->prefill(std::span(tokens_).first(200)).ok());
    for (size_t i = 200; i < 400; ++i) ASSERT_TRUE(session_->decode(tokens_[i]).ok());
    EXPECT_EQ(session_->keep_prefix(std::span(tokens_).first(410)), 400u) << "all of it";

    // The next prompt has the end of the first one, and the answer, in other words.
    std::vector<int32_t> next(tokens_.begin(), tokens_.begin() + 195);
    next.insert(next.end(), 40, 7);
    const size_t kept = session_->keep_prefix(next);
    EXPECT_EQ(kept, 184u) << "16 tokens before the end of the first prompt";
    EXPECT_TRUE(session_->logits().empty());
    ASSERT_TRUE(session_->prefill(std::span(next).subspan(kept)).ok());
    expect_logits_of(next);

    next.resize(100);
    EXPECT_EQ(session_->keep_prefix(next), 0u);
    ASSERT_TRUE(session_->prefill(next).ok());
    expect_logits_of(next);
  }
}

TEST_F(SessionGoingBack, AStepThatWasInterruptedIsAsIfItHadNotBeen) {
  for (const ModelSketch& sketch : {windowed_sketch(8), recurrent_sketch()}) {
    open(sketch, long_context());
    ASSERT_TRUE(opened_.ok()) << opened_.error().message;
    ASSERT_TRUE(session_->prefill(std::span(tokens_).first(150)).ok());
    for (size_t i = 150; i < 160; ++i) ASSERT_TRUE(session_->decode(tokens_[i]).ok());
    stop_ = true;
    for (const size_t count : {1, 200, 1}) {
      const Status stopped = session_->prefill(std::span(tokens_).subspan(160, count));
      ASSERT_FALSE(stopped.ok());
      EXPECT_EQ(stopped.error().kind, ErrorKind::interrupted);
      stop_ = false;
      expect_logits_of(std::span(tokens_).first(160));
      stop_ = true;
    }
    stop_ = false;
    ASSERT_TRUE(session_->decode(tokens_[160]).ok());
    expect_logits_of(std::span(tokens_).first(161));
  }
}

TEST_F(SessionGoingBack, AContextBeyondMemoryIsSaidBeforeAnythingIsLoaded) {
  EngineOptions options = long_context();
  options.context_tokens = 1u << 24;
  options.ram_bytes = uint64_t{1} << 30;
  for (const ModelSketch& sketch : {windowed_sketch(8), recurrent_sketch()}) {
    open(sketch, options);
    ASSERT_FALSE(opened_.ok());
    EXPECT_EQ(opened_.error().kind, ErrorKind::memory);
    const std::string& message = opened_.error().message;
    EXPECT_EQ(message.find('\n'), std::string::npos);
    EXPECT_NE(message.find("--ctx 16777216 needs 3.0"), std::string::npos) << message;
    // The context that the message names is one that can be had.
    const size_t place = message.rfind("--ctx ");
    options.context_tokens = static_cast<uint32_t>(std::stoul(message.substr(place + 6)) * 9 / 10);
    EXPECT_GT(options.context_tokens, 1000000u);
    open(sketch, options);
    EXPECT_TRUE(opened_.ok()) << opened_.error().message;
    options.context_tokens = 1u << 24;
  }
}

}  // namespace
}  // namespace sluice
