// A model without experts: nothing streams, and whatever speaks of experts is silent or zero.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "testing/temp_folder.h"
#include "tests/cli/program.h"

namespace sluice::cli_test {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kDense = SLUICE_SOURCE_DIR "/tests/data/cases/qwen3/model.gguf";

std::vector<std::string> with(std::vector<std::string> words,
                              const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

const std::vector<std::string> kRun{"run", kDense,         "--tokens", "1,2,3", "-n",
                                    "5",   "--ignore-eos", "--temp",   "0"};

/// Every number is one: JSON has null where a division by zero has got through.
void expect_no_nulls(const json& value, const std::string& path = "") {
  EXPECT_FALSE(value.is_null()) << path;
  if (!value.is_structured()) return;
  for (const auto& [key, child] : value.items()) expect_no_nulls(child, path + "/" + key);
}

TEST(Dense, RunIsResidentAndSaysNothingOfExperts) {
  const Outcome outcome = run(with(kRun, {"-v"}));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("qwen3, 2 layers, router: none, all layers are dense\n"));
  EXPECT_THAT(outcome.err, HasSubstr("\nresident: 39.0 KiB dense in memory, 0 B for experts (there "
                                     "are none), "));
  EXPECT_THAT(outcome.err, HasSubstr("roofline per token: drive 0.00 ms, "));
  for (const char* word : {"hit rate", "drive: ", "nan", "inf "})
    EXPECT_THAT(outcome.err, Not(HasSubstr(word)));
}

TEST(Dense, JsonHasZerosWhereExpertsAreCounted) {
  const Outcome outcome = run(with(kRun, {"--json", "--quiet"}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json object = json::parse(outcome.out);
  expect_no_nulls(object);
  EXPECT_EQ(object["tokens"].size(), 5u);
  const json& moe = object["moe"];
  EXPECT_EQ(moe["mode"], "resident");
  EXPECT_EQ(moe["lookahead"], json::array());
  for (const char* name : {"slots_per_layer", "cache_bytes", "expert_bytes", "lookups", "hit_rate",
                           "demand_bytes", "bytes_per_token", "reads_per_distinct_expert"})
    EXPECT_EQ(moe[name], 0) << name;
  EXPECT_EQ(object["drive"]["rate"], 0) << "it was not measured: nothing is read after loading";
  EXPECT_EQ(object["roofline"]["drive_s"], 0);
  EXPECT_GT(object["roofline"]["ram_s"], 0);
}

TEST(Dense, BenchMeasuresIt) {
  const Outcome outcome =
      run({"bench", kDense, "--prompt", "8", "--gen", "4", "--reps", "1", "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json object = json::parse(outcome.out);
  expect_no_nulls(object);
  EXPECT_GT(object["decode_tok_s"], 0);
  EXPECT_EQ(run({"bench", kDense, "--prompt", "8", "--gen", "4", "--reps", "1"}).exit_code, 0);
}

TEST(Dense, InspectSaysWhatATokenReads) {
  const Outcome outcome = run({"inspect", kDense});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.out, HasSubstr("  router        none, all layers are dense\n"));
  EXPECT_THAT(outcome.out, HasSubstr("  can be run    yes\n"));
  EXPECT_THAT(outcome.out, HasSubstr("\nA token\n  dense         34.5 KiB of the resident weights\n"
                                     "  KV cache      128 B (--kv f16), "));
  for (const char* word : {"expert", "streamed", "Floors"})
    EXPECT_THAT(outcome.out, Not(HasSubstr(word)));
  const json object = json::parse(run({"inspect", kDense, "--json"}).out);
  expect_no_nulls(object);
  EXPECT_EQ(object["streamed_bytes"], 0);
  EXPECT_EQ(object["expert_layers"], json::array());
}

TEST(Dense, OptionsOfStreamingHaveNoEffectAndAreNamed) {
  const TempFolder folder;
  const std::string trace = folder.path() + "/trace", census = folder.path() + "/census";
  const Outcome plain = run(kRun);
  EXPECT_THAT(plain.err, Not(HasSubstr("no effect")));
  const Outcome outcome = run(with(
      kRun, {"--moe-stream", "on", "--moe-stream-cache", "4s", "--moe-stream-pool", "ring",
             "--moe-stream-trace", trace, "--moe-stream-census", census, "--moe-stream-correction",
             "/nowhere", "--moe-stream-spec", "2", "--moe-stream-io", "threads"}));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, plain.out);
  EXPECT_THAT(outcome.err,
              HasSubstr("the model has no experts: --moe-stream, --moe-stream-cache, "
                        "--moe-stream-pool, --moe-stream-correction, --moe-stream-spec, "));
  EXPECT_THAT(outcome.err, HasSubstr(" have no effect\n"));
  EXPECT_THAT(outcome.err, Not(HasSubstr("--moe-stream-io,")));
  EXPECT_THAT(outcome.err, HasSubstr("reads by threads"));
  EXPECT_FALSE(std::filesystem::exists(trace) || std::filesystem::exists(census));
  EXPECT_THAT(run(with(kRun, {"--moe-stream-ring", "8"})).err,
              HasSubstr("the model has no experts: --moe-stream-ring has no effect\n"));
}

TEST(Dense, ABudgetBelowItsWeightsIsRefused) {
  const Outcome outcome = run(with(kRun, {"--ram", "40K"}));
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, HasSubstr("sluice: " + kDense +
                                     ": a dense model stays in memory as a "
                                     "whole: its weights need "));
  EXPECT_THAT(outcome.err, HasSubstr(", 40.0 KiB are to be had (--ram); nothing of it can be "
                                     "streamed\n"));
  const Outcome quiet = run(with(kRun, {"--ram", "40K", "--quiet"}));
  EXPECT_EQ(std::ranges::count(quiet.err, '\n'), 1) << quiet.err;
}

}  // namespace
}  // namespace sluice::cli_test
