// What each command prints and returns when all is well.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "testing/temp_folder.h"
#include "tests/cli/program.h"

namespace sluice::cli_test {
namespace {

using nlohmann::json;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kModel = model_path();

TEST(Run, PrintsTheTextAndNothingElse) {
  const Outcome run_it = run({"run", kModel, "-p", "Call me", "-n", "12", "--temp", "0"});
  EXPECT_EQ(run_it.exit_code, 0);
  EXPECT_EQ(run_it.out, ", and I will give thee a reward for thee. And\n");
}

TEST(Run, TakesItsPromptFromAFileStandardInputOrIds) {
  const TempFolder folder;
  const std::string file = folder.write("prompt.txt", "Call me");
  const std::vector<std::vector<std::string>> prompts{
      {"-f", file}, {"-f", "-"}, {"--tokens", "34 409,336"}, {"--prompt", "Call me"}};
  for (const auto& prompt : prompts) {
    std::vector<std::string> words{"run", kModel, "-n", "4", "--temp", "0", "--quiet"};
    words.insert(words.end(), prompt.begin(), prompt.end());
    const Outcome run_it = run(words, {.input = "Call me"});
    EXPECT_EQ(run_it.exit_code, 0) << run_it.err;
    EXPECT_EQ(run_it.out, ", and I will\n") << prompt.front();
    EXPECT_EQ(run_it.err, "");
  }
}

TEST(Run, TheSeedAloneDecidesWhatIsDrawn) {
  const auto text = [](std::vector<std::string> more) {
    std::vector<std::string> words{"run", kModel, "-p", "Call me", "-n", "16", "--quiet"};
    words.insert(words.end(), more.begin(), more.end());
    return run(words).out;
  };
  const std::string first = text({"--seed", "7"});
  EXPECT_EQ(first, text({"--seed", "7", "--isa", "ref", "--threads", "1"}));
  EXPECT_EQ(first, text({"--seed", "7", "--moe-stream-cache", "4s", "--ubatch", "1"}));
  EXPECT_EQ(first, text({"--seed", "7", "--moe-stream", "off", "--moe-stream-io", "threads"}));
  EXPECT_EQ(first, text({"--seed", "8", "--seed", "7"})) << "the last one counts";
  EXPECT_NE(first, text({"--seed", "8"}));
}

TEST(Run, StopTextEndsTheOutput) {
  const Outcome run_it = run({"run", kModel, "-p", "Call me", "--temp", "0", "--quiet", "--stop",
                              "zebra", "--stop", "rd for"});
  EXPECT_EQ(run_it.out, ", and I will give thee a rewa\n");
}

TEST(Run, SaysThatTheContextIsFull) {
  std::vector<std::string> words{"run", kModel, "-p", "Call me", "--ignore-eos", "-n", "7"};
  words.insert(words.end(), {"--ctx", "8"});
  const Outcome cut = run(words);
  EXPECT_EQ(cut.exit_code, 0);
  EXPECT_THAT(cut.err, HasSubstr("the context of 8 positions is full after 6 of 7 tokens; "));
  words.back() = std::string("9");  // assigning the literal, g++ 12 warns of what cannot be
  EXPECT_THAT(run(words).err, Not(HasSubstr("is full")));
  words.insert(words.end(), {"--ctx", "8", "--quiet"});
  EXPECT_EQ(run(words).err, "");
}

TEST(Run, StatisticsSayTheModeTheRatesAndTheRoofline) {
  const Outcome run_it =
      run({"run", kModel, "-p", "Call me", "-n", "12", "--ignore-eos", "--moe-stream-cache", "6s"});
  const std::vector<std::string> lines{
      "(streamed|buffered): prompt 3 tokens in [0-9.]+ s \\([0-9.]+ tokens/s\\), then 11 steps in "
      "[0-9.]+ s \\([0-9.]+ tokens/s\\)\n",
      "experts: hit rate [0-9.]+ %, .* read per token; per token [0-9.]+ ms stall, [0-9.]+ ms "
      "compute\n",
      "roofline per token: drive [0-9.]+ ms, memory [0-9.]+ ms, compute [0-9.]+ ms; floor [0-9.]+ "
      "ms \\((drive|memory|compute)\\), [0-9]+ % reached\n$"};
  for (const std::string& line : lines) EXPECT_THAT(run_it.err, ContainsRegex(line));
}

TEST(Run, ABudgetThatHoldsNothingIsExceededAndSaysSo) {
  const std::vector<std::vector<std::string>> budgets{{"--ram", "1"},
                                                      {"--ram", "1M", "--moe-stream", "off"},
                                                      {"--ram", "1M", "--moe-stream-pool", "ring"},
                                                      {"--moe-stream-headroom", "99999G"}};
  for (const auto& budget : budgets) {
    std::vector<std::string> words{"run", kModel, "-p", "Call me", "-n", "4", "--temp", "0"};
    words.insert(words.end(), budget.begin(), budget.end());
    const Outcome run_it = run(words);
    EXPECT_EQ(run_it.exit_code, 0) << run_it.err;
    EXPECT_EQ(run_it.out, ", and I will\n") << budget.front();
    EXPECT_THAT(run_it.err, HasSubstr("the budget will be exceeded"));
  }
}

TEST(Run, SaysWhichModeItIsIn) {
  const std::vector<std::string> words{"run", kModel, "-p", "Call me", "-n", "1"};
  const auto error_with = [&](const std::string& option, const std::string& value) {
    auto all = words;
    all.insert(all.end(), {option, value});
    return run(all).err;
  };
  EXPECT_THAT(error_with("--moe-stream", "off"), HasSubstr("\nresident: "));
  EXPECT_THAT(error_with("--moe-stream-direct", "off"), HasSubstr("\nbuffered: "));
  EXPECT_THAT(error_with("--moe-stream-io", "threads"), HasSubstr("reads by threads"));
  EXPECT_THAT(error_with("--isa", "ref"), HasSubstr("of ref\n"));
}

TEST(Run, TheSizeOfTheCacheHoldsForTheRingToo) {
  const auto error_with = [&](std::vector<std::string> more) {
    std::vector<std::string> words{"run", kModel, "-p", "Call me", "-n", "1"};
    words.insert(words.end(), more.begin(), more.end());
    return run(words).err;
  };
  const auto ring_with = [&](std::vector<std::string> more) {
    more.insert(more.end(), {"--moe-stream-pool", "ring"});
    return error_with(more);
  };
  EXPECT_THAT(ring_with({}), HasSubstr("(a ring of 256)")) << "all experts";
  EXPECT_THAT(ring_with({"--moe-stream-cache", "5s"}), HasSubstr("(a ring of 40)")) << "8 layers";
  EXPECT_THAT(ring_with({"--moe-stream-cache", "2M"}), HasSubstr("(a ring of 28)"))
      << "of 72 KiB each";
  EXPECT_THAT(ring_with({"--moe-stream-cache", "2M", "--moe-stream-ring", "12"}),
              HasSubstr("(a ring of 12)"));
  EXPECT_THAT(error_with({"--moe-stream-ring", "12"}),
              HasSubstr("it needs --moe-stream-pool ring"));
}

TEST(Demo, WritesAPassageThatBeginsWithItsOpening) {
  const TempFolder elsewhere;  // the model is found from any folder
  const Outcome demo = run({"demo"}, {.folder = elsewhere.path()});
  EXPECT_EQ(demo.exit_code, 0) << demo.err;
  EXPECT_TRUE(demo.out.starts_with("Mr. Darcy looked at her with an earnestness which had been"));
  EXPECT_TRUE(demo.out.ends_with("which could be equally unlike him.\n")) << demo.out;
  EXPECT_THAT(demo.err, HasSubstr("10 of 32 a layer"));
}

TEST(Demo, LicenceIsPrinted) {
  const Outcome licence = run({"demo", "--licence"});
  EXPECT_EQ(licence.exit_code, 0);
  EXPECT_EQ(licence.out, file_bytes(SLUICE_SOURCE_DIR "/models/NOTICE"));
}

TEST(Demo, FirstTokenComesWithinASecondOrSo) {
  const Outcome demo = run({"demo", "--json", "--quiet", "-n", "2"});
  ASSERT_EQ(demo.exit_code, 0);
  const json object = json::parse(demo.out);
  EXPECT_LT(object["ttft_s"].get<double>() + object["load_s"].get<double>(), 3.0);
}

TEST(Eval, WritesTheSameBytesInOneBatchAndStepByStep) {
  const TempFolder folder;
  const std::string batch = folder.path() + "/batch", steps = folder.path() + "/steps";
  const std::string list = folder.write("list", "34, 409\n336\n");
  const Outcome first = run({"eval", kModel, "--tokens", "34,409,336", "--logits", batch});
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_EQ(first.out, "hash: d1b26aae40a62b8fbb7cbb4f497957bf\n");
  const Outcome second =
      run({"eval", kModel, "--tokens-file", list, "--logits", steps, "--steps", "--json"});
  ASSERT_EQ(second.exit_code, 0) << second.err;
  EXPECT_EQ(
      json::parse(second.out),
      json({{"tokens", 3}, {"vocabulary", 4096}, {"hash", "d1b26aae40a62b8fbb7cbb4f497957bf"}}));
  EXPECT_EQ(file_bytes(batch).size(), size_t{3} * 4096 * 4);
  EXPECT_EQ(file_bytes(batch), file_bytes(steps));
}

TEST(Tokenize, TextFileAndStandardInputGiveTheSameIds) {
  const TempFolder folder;
  const std::string file = folder.write("text", "Call me");
  EXPECT_EQ(run({"tokenize", kModel, "-p", "Call me"}).out, "34,409,336\n");
  EXPECT_EQ(run({"tokenize", kModel, "-f", file}).out, "34,409,336\n");
  EXPECT_EQ(run({"tokenize", kModel, "-"}, {.input = "Call me"}).out, "34,409,336\n");
  EXPECT_EQ(run({"tokenize", kModel, "-", "--json"}, {.input = "Call me"}).out,
            "{\"tokens\":[34,409,336]}\n");
  EXPECT_EQ(run({"tokenize", kModel, "-p", ""}).out, "\n");
}

TEST(Tokenize, ControlTokensAreRecognisedUnlessToldNotTo) {
  const std::string end = "<|endoftext|>";
  const Outcome parsed = run({"tokenize", kModel, "-p", end, "--json"});
  const Outcome plain = run({"tokenize", kModel, "-p", end, "--json", "--no-special"});
  EXPECT_EQ(json::parse(parsed.out)["tokens"].size(), 1u) << parsed.out;
  EXPECT_GT(json::parse(plain.out)["tokens"].size(), 1u);
}

TEST(Detokenize, GivesBackTheBytes) {
  const std::string text = "Caf\xc3\xa9 at noon,\n\tthen \xf0\x9f\x8c\xb2!";
  Outcome ids = run({"tokenize", kModel, "-"}, {.input = text});
  ids.out.pop_back();
  const Outcome back = run({"detokenize", kModel, "--tokens", ids.out});
  EXPECT_EQ(back.exit_code, 0);
  EXPECT_EQ(back.out, text);
}

TEST(Inspect, DescribesAModel) {
  const Outcome inspect = run({"inspect", kModel});
  EXPECT_EQ(inspect.exit_code, 0);
  EXPECT_EQ(inspect.err, "");
  for (const std::string line :
       {"  architecture  qwen3moe\n", "  can be run    yes\n",
        "  Q5_0           4 tensors      2.8 MiB\n",
        "  streamed      24 tensors     16.0 MiB   routed experts, read when needed\n",
        "  4 to 5      32 of   58.0 KiB:   gate Q4_K 18.0 KiB   up Q4_K 18.0 KiB   down Q5_0 22.0 "
        "KiB\n",
        "  KV cache      4.0 KiB (--kv f16), 8.0 KiB (--kv f32), 2.1 KiB (--kv q8_0)\n",
        "  useful        2.0 MiB: 32 experts, all that one token uses\n",
        "  possible      4 slots in each layer (--moe-stream-cache 4s)\n"})
    EXPECT_THAT(inspect.out, HasSubstr(line));
  EXPECT_EQ(inspect.out.find("blk.0."), std::string::npos);
  const Outcome verbose = run({"inspect", kModel, "-v"});
  EXPECT_TRUE(verbose.out.starts_with(inspect.out)) << "and then the tensors";
  EXPECT_THAT(verbose.out,
              HasSubstr("  blk.1.ffn_down_exps.weight  Q5_0       704.0 KiB  streamed  "
                        "[128, 256, 32]\n"));
}

}  // namespace
}  // namespace sluice::cli_test
