// Sessions and generation over the demo model, through the public API.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "engine/engine.h"
#include "engine/generate.h"
#include "gguf/gguf_file.h"
#include "testing/byte_surgery.h"
#include "testing/temp_folder.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

const std::string kModel = SLUICE_SOURCE_DIR "/models/demo-q4_k_m.gguf";
constexpr size_t kLayers = 8;
constexpr size_t kUsed = 4;

const std::vector<text::TokenId> kCallMe{34, 409, 336};
// Recorded from the reference kernels, greedy, 30 November 2026.
const std::vector<text::TokenId> kContinuation{11,  279, 302,  465, 884,  823, 258,  3705,
                                               329, 823, 13,   478, 302,  465, 1250, 823,
                                               564, 260, 1018, 273, 2060, 11,  279,  465};
constexpr std::string_view kText =
    ", and I will give thee a reward for thee. And I will bring thee into the land of Egypt, and "
    "will";

Result<std::unique_ptr<Engine>> open_demo(const EngineOptions& options = {},
                                          const std::atomic<bool>* stop = nullptr) {
  return Engine::open(kModel, options, Log(LogLevel::quiet), stop);
}

GenerateRequest greedy(size_t token_max) {
  return {.prompt = kCallMe, .token_max = token_max, .sampling = {.temperature = 0}, .stop = {}};
}

/// An engine with a cache too small for the experts, and a session.
class DemoSession : public ::testing::Test {
 protected:
  void open(const EngineOptions& options, const std::atomic<bool>* stop = nullptr) {
    auto opened = open_demo(options, stop);
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    session = nullptr;  // before its engine
    engine = std::move(*opened);
    auto made = engine->new_session();
    ASSERT_TRUE(made.ok()) << made.error().message;
    session = std::move(*made);
  }
  void open_small() {
    EngineOptions options;
    options.cache.slots_per_layer = 6;
    open(options);
  }
  Result<GenerateResult> run(const GenerateRequest& request, const TextReceiver& receiver = {}) {
    return generate(*engine, *session, request, receiver);
  }

  std::unique_ptr<Engine> engine;
  std::unique_ptr<Session> session;
};

TEST_F(DemoSession, GreedyTextIsTheRecordedOneOnEveryIsa) {
  std::istringstream names(usable_isa_names());
  for (std::string isa; names >> isa;) {
    EngineOptions options;
    options.isa = isa;
    options.cache.slots_per_layer = 5;
    open(options);
    std::string shown;
    const auto result = run(greedy(kContinuation.size()), [&](std::string_view text) {
      shown += text;
      return Status();
    });
    ASSERT_TRUE(result.ok()) << result.error().message;
    EXPECT_EQ(result->tokens, kContinuation) << isa;
    EXPECT_EQ(result->text, kText) << isa;
    EXPECT_EQ(shown, kText) << isa;
    EXPECT_EQ(result->finish, FinishReason::length);
    EXPECT_EQ(result->logits_hash, "35997ea685a32493cd3fd3a78c8a7bc6") << isa;
  }
}

TEST_F(DemoSession, ResetForgetsEverything) {
  open_small();
  EXPECT_TRUE(session->logits().empty());
  ASSERT_TRUE(session->prefill(kCallMe).ok());
  const std::vector<float> first(session->logits().begin(), session->logits().end());
  EXPECT_EQ(session->position(), 3u);
  session->reset();
  EXPECT_EQ(session->position(), 0u);
  EXPECT_TRUE(session->logits().empty());
  ASSERT_TRUE(session->prefill(std::vector<text::TokenId>{900, 901, 902, 903}).ok());
  session->reset();
  ASSERT_TRUE(session->prefill(kCallMe).ok());
  EXPECT_TRUE(std::ranges::equal(session->logits(), first));
}

TEST_F(DemoSession, APrefixIsKeptToTheBit) {
  open_small();
  std::vector<text::TokenId> tokens = kCallMe;
  tokens.insert(tokens.end(), kContinuation.begin(), kContinuation.end());
  ASSERT_TRUE(session->prefill(tokens).ok());
  const std::vector<float> fresh(session->logits().begin(), session->logits().end());

  std::vector<text::TokenId> other(tokens.begin(), tokens.begin() + 10);
  other.insert(other.end(), {900, 901, 902});
  session->reset();
  EXPECT_EQ(session->keep_prefix(tokens), 0u) << "there is nothing to keep";
  ASSERT_TRUE(session->prefill(other).ok());
  const size_t kept = session->keep_prefix(tokens);
  EXPECT_EQ(kept, 10u);
  EXPECT_EQ(session->position(), kept);
  ASSERT_TRUE(session->prefill(std::span(tokens).subspan(kept)).ok());
  EXPECT_TRUE(std::ranges::equal(session->logits(), fresh));

  EXPECT_EQ(session->keep_prefix(tokens), tokens.size() - 1) << "one is left to run";
  ASSERT_TRUE(session->decode(tokens.back()).ok());
  EXPECT_TRUE(std::ranges::equal(session->logits(), fresh));
  EXPECT_EQ(session->keep_prefix(kCallMe), 2u) << "a shorter one";
  EXPECT_EQ(session->keep_prefix({}), 0u);
}

TEST_F(DemoSession, SessionsDoNotDisturbEachOther) {
  open_small();
  auto other = engine->new_session();
  ASSERT_TRUE(other.ok());
  ASSERT_TRUE(session->prefill(kCallMe).ok());
  ASSERT_TRUE((*other)->prefill(std::vector<text::TokenId>{1000, 1001}).ok());
  for (size_t i = 0; i + 1 < 8; ++i) {
    const auto logits = session->logits();
    EXPECT_EQ(std::ranges::max_element(logits) - logits.begin(), kContinuation[i]);
    ASSERT_TRUE(session->decode(kContinuation[i]).ok());
    ASSERT_TRUE((*other)->decode(1002).ok());
  }
}

TEST_F(DemoSession, CountersObeyTheirSums) {
  open_small();
  const auto result = run(greedy(9));
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->decode_steps, 8u) << "the first token comes with the prompt";
  for (const MoeCounters& moe : {result->prefill_moe, result->decode_moe})
    EXPECT_EQ(moe.lookups, moe.hits + moe.joins + moe.misses);
  EXPECT_EQ(result->decode_moe.lookups, 8 * kLayers * kUsed);
  EXPECT_GT(result->decode_moe.misses, 0u);
  EXPECT_GT(result->decode_moe.hits, 0u);
  EXPECT_GT(result->decode_moe.demand_bytes, 0u);
  EXPECT_LE(result->decode_moe.stall_s, result->decode_s);
  EXPECT_LE(result->prefill_s, result->ttft_s);
}

TEST_F(DemoSession, PromptLongerThanTheContextIsAUsageError) {
  open({.context_tokens = 4});
  const std::vector<text::TokenId> five(5, 100);
  const Status refused = session->prefill(five);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::usage);
  EXPECT_THAT(refused.error().message, HasSubstr("5 tokens"));
  EXPECT_THAT(refused.error().message, HasSubstr("--ctx"));
  EXPECT_EQ(session->position(), 0u);
  ASSERT_TRUE(session->prefill(std::span(five).first(4)).ok()) << "exactly full is fine";
  const Status full = session->decode(100);
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(full.error().kind, ErrorKind::usage);
  EXPECT_EQ(session->position(), 4u);
}

TEST_F(DemoSession, AFullContextEndsGeneration) {
  open({.context_tokens = 8});
  const auto result = run(greedy(100));
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(result->finish, FinishReason::context_full);
  // Five more fit behind the three of the prompt; the logits of the last give a sixth.
  EXPECT_EQ(result->tokens, std::vector(kContinuation.begin(), kContinuation.begin() + 6));
}

TEST_F(DemoSession, StopStringEndsTheTextBeforeIt) {
  open_small();
  GenerateRequest request = greedy(24);
  request.stop = {"zebra", "rd for"};  // spans two tokens
  const auto result = run(request);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->finish, FinishReason::stop_string);
  EXPECT_EQ(result->text, ", and I will give thee a rewa");
}

TEST_F(DemoSession, EndTokenEndsTheTextUnlessIgnored) {
  open_small();
  const std::vector<text::TokenId> prompt =
      engine->tokenizer().tokenize("Mr. Darcy looked at her", {});
  GenerateRequest request{.prompt = prompt,
                          .token_max = 160,
                          .sampling = {.temperature = 0.7f, .seed = 1},  // as in the demo
                          .stop = {}};
  const auto ended = run(request);
  ASSERT_TRUE(ended.ok());
  EXPECT_EQ(ended->finish, FinishReason::end_of_generation);
  EXPECT_EQ(ended->tokens.size(), 127u);
  EXPECT_TRUE(ended->text.ends_with("which could be equally unlike him.")) << ended->text;

  session->reset();
  request.ignore_eos = true;
  const auto ignored = run(request);
  ASSERT_TRUE(ignored.ok());
  EXPECT_EQ(ignored->finish, FinishReason::length);
  EXPECT_EQ(ignored->tokens.size(), 160u);
  EXPECT_TRUE(engine->tokenizer().is_end_of_generation(ignored->tokens[127]));
}

TEST_F(DemoSession, NoTokensAskedForComputesThePromptOnly) {
  open_small();
  const auto result = run(greedy(0));
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(result->tokens.empty());
  EXPECT_EQ(result->decode_steps, 0u);
  EXPECT_EQ(session->position(), 3u);
}

TEST_F(DemoSession, WhatCannotBeAskedForIsRefused) {
  open_small();
  GenerateRequest request = greedy(4);
  request.prompt.clear();
  auto refused = run(request);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::usage);
  request = greedy(4);
  request.sampling.temperature = std::numeric_limits<float>::quiet_NaN();
  refused = run(request);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::usage);
  EXPECT_EQ(session->position(), 0u);
}

TEST_F(DemoSession, AReceiverThatFailsEndsGeneration) {
  open_small();
  size_t calls = 0;
  const auto failed = run(greedy(24), [&](std::string_view) -> Status {
    if (++calls < 3) return {};
    return make_error(ErrorKind::io, "the pipe is closed");
  });
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().message, "the pipe is closed");
  EXPECT_EQ(calls, 3u);
}

TEST_F(DemoSession, StopEndsAStepAndLeavesTheSessionAsItWas) {
  std::atomic<bool> stop{false};
  open({}, &stop);
  ASSERT_TRUE(session->prefill(kCallMe).ok());
  stop = true;
  const Status stopped = session->decode(kContinuation[0]);
  ASSERT_FALSE(stopped.ok());
  EXPECT_EQ(stopped.error().kind, ErrorKind::interrupted);
  EXPECT_EQ(session->position(), 3u);
  stop = false;
  ASSERT_TRUE(session->decode(kContinuation[0]).ok());
  const auto logits = session->logits();
  EXPECT_EQ(std::ranges::max_element(logits) - logits.begin(), kContinuation[1]);
}

TEST_F(DemoSession, StopEndsALongPromptBetweenTwoPieces) {
  std::atomic<bool> stop{false};
  EngineOptions options;
  options.ubatch_tokens = 16;
  options.cache.slots_per_layer = 32;  // all experts will be here: nothing is waited for
  open(options, &stop);
  const std::vector<text::TokenId> prompt(400, 100);
  ASSERT_TRUE(session->prefill(prompt).ok());
  session->reset();
  stop = true;
  const Status stopped = session->prefill(prompt);
  ASSERT_FALSE(stopped.ok());
  EXPECT_EQ(stopped.error().kind, ErrorKind::interrupted);
  EXPECT_EQ(session->position(), 0u);
}

TEST(Engine, StopEndsLoading) {
  const std::atomic<bool> stop{true};
  for (const StreamMode stream : {StreamMode::on, StreamMode::off}) {
    const auto stopped = open_demo({.stream = stream}, &stop);
    ASSERT_FALSE(stopped.ok());
    EXPECT_EQ(stopped.error().kind, ErrorKind::interrupted);
  }
}

TEST(Engine, AContextThatMemoryCannotHoldIsRefusedWithOneThatFits) {
  const auto engine =
      open_demo({.context_tokens = 1u << 24, .kv = KvFormat::f32, .ram_bytes = 1u << 30});
  ASSERT_FALSE(engine.ok());
  EXPECT_EQ(engine.error().kind, ErrorKind::memory);
  EXPECT_THAT(engine.error().message, HasSubstr("; --ctx "));
}

/// The demo model with the four bytes at `offset` of a tensor replaced by a NaN.
std::string with_nan_in(const TempFolder& folder, std::string_view tensor) {
  std::ifstream file(kModel, std::ios::binary);
  std::string bytes(std::istreambuf_iterator<char>(file), {});
  const auto gguf = gguf::GgufFile::open(kModel);
  CHECK(gguf.ok());
  bytes.replace(gguf->find_tensor(tensor)->extent.offset, sizeof(float),
                bytes_of(std::numeric_limits<float>::quiet_NaN()));
  return folder.write("damaged.gguf", bytes);
}

TEST(Engine, LogitsThatAreNotFiniteEndTheRequest) {
  const TempFolder folder;
  for (const std::string_view tensor : {"output_norm.weight", "blk.3.ffn_norm.weight"}) {
    const std::string path = with_nan_in(folder, tensor);
    auto engine = Engine::open(path, {}, Log(LogLevel::quiet), nullptr);
    ASSERT_TRUE(engine.ok()) << engine.error().message;
    auto session = (*engine)->new_session();
    ASSERT_TRUE(session.ok());
    const Status failed = (*session)->prefill(kCallMe);
    ASSERT_FALSE(failed.ok()) << tensor;
    EXPECT_EQ(failed.error().kind, ErrorKind::corrupt);
    EXPECT_THAT(failed.error().message, HasSubstr("damaged.gguf"));
    EXPECT_THAT(failed.error().message, HasSubstr("not finite"));
    EXPECT_EQ((*session)->position(), 0u);
  }
}

}  // namespace
}  // namespace sluice
