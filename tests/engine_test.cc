// What an engine promises beside its numbers: a step that fails or is stopped leaves the session as
// it was, a damaged file is an error, and a stated memory limit is kept.
#include "engine/engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/random.h"
#include "base/units.h"
#include "testing/huge_pages.h"
#include "testing/temp_folder.h"
#include "tests/support/model_bytes.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

const std::string kFloats = SLUICE_SOURCE_DIR "/tests/data/cases/qwen3moe/model.gguf";
const std::string kQuantised = SLUICE_SOURCE_DIR "/tests/data/cases/qwen3moe-q8_0/model.gguf";

std::vector<int32_t> some_tokens(size_t count, uint64_t seed = 3) {
  Random random(seed);
  std::vector<int32_t> tokens(count);
  for (int32_t& token : tokens) token = static_cast<int32_t>(random.below(256));
  return tokens;
}

EngineOptions small_options() {
  EngineOptions options;
  options.threads = 2;
  options.context_tokens = 256;
  options.cache.slots_per_layer = 1;  // as few as possible: every step reads
  return options;
}

Result<std::unique_ptr<Engine>> open(const std::string& path, const EngineOptions& options,
                                     const std::atomic<bool>* stop = nullptr) {
  return Engine::open(path, options, Log(LogLevel::quiet), stop);
}

std::vector<float> copy_of(std::span<const float> values) {
  return {values.begin(), values.end()};
}

/// The last logits after these tokens, by an engine of its own.
std::vector<float> logits_after(const std::string& path, std::span<const int32_t> tokens,
                                KvFormat kv = KvFormat::f16) {
  EngineOptions options = small_options();
  options.kv = kv;
  const auto engine = open(path, options);
  CHECK(engine.ok());
  const auto session = (*engine)->new_session();
  CHECK(session.ok());
  const Status done = (*session)->prefill(tokens);
  CHECK(done.ok());
  return copy_of((*session)->logits());
}

TEST(Engine, AFileCutWhileInUseIsAnErrorAndNotTheEnd) {
  const TempFolder folder;
  const std::string path = folder.path() + "/model.gguf";
  fs::copy_file(kFloats, path);
  for (const auto io : {ReadBackend::automatic, ReadBackend::threads}) {
    EngineOptions options = small_options();
    options.io = io;
    const auto engine = open(path, options);
    ASSERT_TRUE(engine.ok()) << engine.error().message;
    const auto session = (*engine)->new_session();
    ASSERT_TRUE(session.ok());
    const auto tokens = some_tokens(40);
    ASSERT_TRUE((*session)->prefill(std::span(tokens).first(10)).ok());
    const std::vector<float> before = copy_of((*session)->logits());

    fs::resize_file(path, fs::file_size(path) / 4 + 1000);
    const Status done = (*session)->prefill(std::span(tokens).subspan(10));
    ASSERT_FALSE(done.ok());
    EXPECT_EQ(done.error().kind, ErrorKind::io);
    EXPECT_NE(done.error().message.find(path), std::string::npos);
    EXPECT_NE(done.error().message.find("cut short while in use"), std::string::npos)
        << done.error().message;
    EXPECT_EQ((*session)->position(), 10u);
    EXPECT_EQ(copy_of((*session)->logits()), before);

    // Overwritten in place, the file is whole again, and the session goes on.
    std::ifstream source(kFloats, std::ios::binary);
    std::fstream target(path, std::ios::binary | std::ios::in | std::ios::out);
    target << source.rdbuf();
    target.close();
    ASSERT_TRUE((*session)->prefill(std::span(tokens).subspan(10)).ok());
    EXPECT_EQ(copy_of((*session)->logits()), logits_after(kFloats, tokens));
  }
}

TEST(Engine, AnotherThreadMayStopAStep) {
  std::atomic<bool> stop{false};
  const auto engine = open(kFloats, small_options(), &stop);
  ASSERT_TRUE(engine.ok()) << engine.error().message;
  const auto session = (*engine)->new_session();
  ASSERT_TRUE(session.ok());
  const auto tokens = some_tokens(250);
  std::thread stopper([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    stop = true;
  });
  size_t done_count = 0;
  Status done;
  while (true) {
    if (done_count == tokens.size()) {
      done_count = 0;
      (*session)->reset();
    }
    done = (*session)->decode(tokens[done_count]);
    if (!done) break;
    ++done_count;
  }
  stopper.join();
  EXPECT_EQ(done.error().kind, ErrorKind::interrupted);
  EXPECT_EQ((*session)->position(), done_count);
  EXPECT_FALSE((*session)->decode(0).ok()) << "as long as the flag stands";
  stop = false;
  ASSERT_TRUE((*session)->prefill(std::span(tokens).subspan(done_count)).ok());
  EXPECT_EQ(copy_of((*session)->logits()), logits_after(kFloats, tokens));
}

TEST(Engine, OpeningMayBeStopped) {
  const std::atomic<bool> stop{true};
  EngineOptions options = small_options();
  for (const StreamMode stream : {StreamMode::on, StreamMode::off}) {
    options.stream = stream;
    const auto engine = open(kFloats, options, &stop);
    ASSERT_FALSE(engine.ok());
    EXPECT_EQ(engine.error().kind, ErrorKind::interrupted);
  }
}

/// A model whose embedding of token 5 is not a number.
std::string write_poisoned(const TempFolder& folder) {
  const auto model = ModelBytes::open(kFloats);
  const FileExtent embedding = model->header().find_tensor("token_embd.weight")->extent;
  const uint64_t row_bytes = model->config().hidden_size * sizeof(float);
  std::vector<std::byte> bytes = model->files()[0];
  std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(embedding.offset + 5 * row_bytes),
              row_bytes, std::byte{0xff});
  return folder.write("poisoned.gguf", std::span<const std::byte>(bytes));
}

/// A step with token 5 in it is void, and what it left in the KV cache is never seen.
void check_poisoned(const EngineOptions& options) {
  const TempFolder folder;
  const auto engine = open(write_poisoned(folder), options);
  ASSERT_TRUE(engine.ok()) << engine.error().message;
  const auto session = (*engine)->new_session();
  ASSERT_TRUE(session.ok());
  auto tokens = some_tokens(40);
  std::ranges::replace(tokens, 5, 6);
  ASSERT_TRUE((*session)->prefill(std::span(tokens).first(10)).ok());
  const std::vector<float> before = copy_of((*session)->logits());
  auto poisoned = tokens;
  poisoned[14] = 5;
  const auto ignore = [](std::span<const float>, size_t) {};
  for (const bool all_logits : {false, true}) {
    const auto rest = std::span(poisoned).subspan(10);
    const Status done = all_logits ? (*session)->prefill(rest, ignore) : (*session)->prefill(rest);
    ASSERT_FALSE(done.ok());
    EXPECT_EQ(done.error().kind, ErrorKind::corrupt);
    EXPECT_NE(done.error().message.find("poisoned.gguf: the logits"), std::string::npos);
    EXPECT_EQ((*session)->position(), 10u);
    EXPECT_EQ(copy_of((*session)->logits()), before) << "as if nothing had been tried";
  }
  ASSERT_TRUE((*session)->decode(tokens[10]).ok());
  ASSERT_TRUE((*session)->prefill(std::span(tokens).subspan(11)).ok());
  EXPECT_EQ(copy_of((*session)->logits()), logits_after(kFloats, tokens, options.kv));
}

TEST(Engine, LogitsThatAreNoNumbersEndTheStepAndLeaveNoTrace) {
  std::string names = usable_isa_names() + " ";
  for (size_t end; (end = names.find(' ')) != std::string::npos; names.erase(0, end + 1))
    for (const KvFormat kv : {KvFormat::f16, KvFormat::f32, KvFormat::q8_0}) {
      EngineOptions options = small_options();
      options.isa = names.substr(0, end);
      options.kv = kv;
      SCOPED_TRACE(options.isa);
      check_poisoned(options);
    }
}

TEST(Engine, APromptBeyondTheContextIsTheUsersMistake) {
  const auto engine = open(kQuantised, small_options());
  ASSERT_TRUE(engine.ok()) << engine.error().message;
  const auto session = (*engine)->new_session();
  ASSERT_TRUE(session.ok());
  ASSERT_TRUE((*session)->prefill(some_tokens(250)).ok());
  const Status done = (*session)->prefill(some_tokens(7));
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().kind, ErrorKind::usage);
  EXPECT_EQ((*session)->position(), 250u);
  EXPECT_TRUE((*session)->prefill(some_tokens(6)).ok()) << "the context is full to the last place";
}

TEST(Engine, SessionsDoNotSeeEachOther) {
  const auto engine = open(kQuantised, small_options());
  ASSERT_TRUE(engine.ok()) << engine.error().message;
  const auto a = (*engine)->new_session(), b = (*engine)->new_session();
  ASSERT_TRUE(a.ok() && b.ok());
  const auto tokens_a = some_tokens(30, 1), tokens_b = some_tokens(30, 2);
  for (size_t i = 0; i < 30; ++i) {
    ASSERT_TRUE((*a)->decode(tokens_a[i]).ok());
    ASSERT_TRUE((*b)->decode(tokens_b[i]).ok());
  }
  EXPECT_EQ(copy_of((*a)->logits()), logits_after(kQuantised, tokens_a));
  EXPECT_EQ(copy_of((*b)->logits()), logits_after(kQuantised, tokens_b));
  (*a)->reset();
  EXPECT_TRUE((*a)->logits().empty());
  ASSERT_TRUE((*a)->prefill(tokens_b).ok());
  EXPECT_EQ(copy_of((*a)->logits()), copy_of((*b)->logits()));
}

/// Runs the program and reads its one JSON object.
nlohmann::json run_program(const std::string& arguments) {
  const std::string command = std::string(SLUICE_PROGRAM) + " " + arguments;
  std::FILE* pipe = popen(command.c_str(), "r");
  CHECK(pipe != nullptr);
  std::string output;
  for (char piece[4096]; const size_t count = std::fread(piece, 1, sizeof(piece), pipe);)
    output.append(piece, count);
  EXPECT_EQ(pclose(pipe), 0) << command;
  return nlohmann::json::parse(output, nullptr, false);
}

/// A reply gives the memory of its prompt back; the next prompt has huge pages all the same.
TEST(Engine, EveryLongPromptHasHugePages) {
  EngineOptions options;
  options.threads = 2;
  const auto engine = open(SLUICE_SOURCE_DIR "/models/demo-q4_k_m.gguf", options);
  ASSERT_TRUE(engine.ok());
  const auto session = (*engine)->new_session();
  const std::vector<int32_t> prompt = some_tokens(400);
  ASSERT_TRUE((*session)->prefill(prompt).ok());
  const uint64_t before = bytes_without_huge_pages();
  ASSERT_TRUE((*session)->decode(1).ok());
  if (bytes_without_huge_pages() == before) GTEST_SKIP() << "this system has no huge pages";
  (*session)->reset();
  ASSERT_TRUE((*session)->prefill(prompt).ok());
  EXPECT_EQ(bytes_without_huge_pages(), before);
}

/// With everything on that names experts before they are asked for.
TEST(Engine, ALayerMayHaveFewerExpertsThanOthers) {
  const TempFolder folder;
  const std::string path = folder.path() + "/fewer.gguf";
  const auto tokens = some_tokens(20);
  for (const uint32_t layer : {0, 1}) {
    write_with_fewer_experts(*ModelBytes::open(kQuantised), layer, 3, path);
    EngineOptions options = small_options();
    options.cache.slots_per_layer = 3;
    options.spec_count = 64;
    options.lookahead_width = 64;
    options.governor = Switch::off;
    options.trace_path = folder.path() + "/trace";
    options.trace_scores = Switch::on;
    const auto engine = open(path, options);
    ASSERT_TRUE(engine.ok()) << engine.error().message;
    const auto session = (*engine)->new_session();
    ASSERT_TRUE(session.ok());
    for (const int32_t token : tokens) ASSERT_TRUE((*session)->decode(token).ok());
    EXPECT_EQ(copy_of((*session)->logits()), logits_after(path, tokens));
  }
}

/// The experts alone are larger than the limit, and the text makes use of all of them.
TEST(Engine, AStatedMemoryLimitIsKept) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer takes memory of its own";
#endif
  const TempFolder folder;
  const std::string path = folder.path() + "/many.gguf";
  write_with_more_experts(*ModelBytes::open(kQuantised), 200, path);
  std::string prompt;
  for (const int32_t token : some_tokens(300)) prompt += fmt::format("{},", token);
  prompt.pop_back();
  uint64_t last_peak = 0;
  for (const uint64_t limit_mib : {40, 56, 72}) {
    const auto json = run_program(
        fmt::format("run {} --tokens {} -n 60 --ignore-eos --ram {}M --threads 2 --json --quiet",
                    path, prompt, limit_mib));
    ASSERT_TRUE(json.is_object());
    const uint64_t peak = json["memory"]["rss_peak"];
    EXPECT_LE(peak, limit_mib * kMiB) << format_bytes(peak);
    EXPECT_GE(peak, last_peak + 4 * kMiB) << "what may be used is used";
    EXPECT_LT(json["moe"]["cache_bytes"], fs::file_size(path));
    EXPECT_GT(json["moe"]["misses"], 0) << "it has streamed";
    last_peak = peak;
  }
}

}  // namespace
}  // namespace sluice
