// sluice chat: turns from a pipe, its commands, and what ends an answer or the chat.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "testing/temp_folder.h"
#include "tests/cli/program.h"

namespace sluice::cli_test {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

const std::string kModel = model_path();

std::vector<std::string> chat(std::vector<std::string> more = {}) {
  std::vector<std::string> words{"chat", kModel, "--quiet", "--temp", "0",
                                 "-n",   "6",    "--ctx",   "512"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

std::vector<json> turns_of(const Outcome& outcome) {
  std::vector<json> turns;
  std::istringstream lines(outcome.out);
  for (std::string line; std::getline(lines, line);) turns.push_back(json::parse(line));
  return turns;
}

TEST(Chat, OneLineIsOneTurn) {
  const Outcome outcome = run(chat(), {.input = "Call me\n\nWho art thou?"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.err, "") << "no signs where nobody types";
  EXPECT_GE(std::ranges::count(outcome.out, '\n'), 2);
}

TEST(Chat, EveryTurnReusesWhatItKnows) {
  const auto turns = turns_of(run(chat({"--json"}), {.input = "Call me\nAgain\n"}));
  ASSERT_EQ(turns.size(), 2u);
  EXPECT_EQ(turns[0]["reused_tokens"], 0);
  EXPECT_GT(turns[1]["reused_tokens"], turns[0]["prompt_tokens"].get<int>() - 1);
  EXPECT_GT(turns[1]["prompt_tokens"], turns[1]["reused_tokens"]);
  for (const char* field : {"text", "thinking", "finish", "generated_tokens", "prefill_s",
                            "decode_s", "hit_rate", "stall_s"})
    EXPECT_TRUE(turns[0].contains(field)) << field;
}

TEST(Chat, ResetMakesTheFirstTurnAgain) {
  const auto turns =
      turns_of(run(chat({"--json", "--system", "Be brief."}),
                   {.input = "Call me\nMore\n/reset\nCall me\n/system Other\n/reset\nCall me\n"}));
  ASSERT_EQ(turns.size(), 4u);
  EXPECT_EQ(turns[2]["text"], turns[0]["text"]);
  EXPECT_EQ(turns[2]["prompt_tokens"], turns[0]["prompt_tokens"]);
  EXPECT_EQ(turns[2]["reused_tokens"], turns[0]["prompt_tokens"].get<int>() - 1);
  EXPECT_NE(turns[3]["prompt_tokens"], turns[0]["prompt_tokens"]);
}

TEST(Chat, ThreeQuotesHoldSeveralLines) {
  const auto turns = turns_of(
      run(chat({"--json"}), {.input = "\"\"\"Call\nme\"\"\"\n/reset\n\"\"\"\nCall\nme\n\"\"\"\n"}));
  ASSERT_EQ(turns.size(), 2u);
  EXPECT_EQ(turns[0]["text"], turns[1]["text"]);
  EXPECT_EQ(turns[0]["prompt_tokens"], turns[1]["prompt_tokens"]);
  const auto unfinished = turns_of(run(chat({"--json"}), {.input = "\"\"\"\nCall\nme\n"}));
  ASSERT_EQ(unfinished.size(), 1u) << "the input's end is the text's";
  EXPECT_EQ(unfinished[0]["text"], turns[0]["text"]);
}

TEST(Chat, CommandsAnswerOnStandardError) {
  const Outcome outcome =
      run(chat(), {.input = "/help\n/think off\n/nonsense\nCall me\n/stats\n/exit\nnever\n"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.err, HasSubstr("/reset"));
  EXPECT_THAT(outcome.err, HasSubstr("has no switch for thinking"));
  EXPECT_THAT(outcome.err, HasSubstr("there is no command '/nonsense'"));
  EXPECT_THAT(outcome.err, HasSubstr("last turn: prompt "));
  EXPECT_THAT(outcome.err, HasSubstr("all 1: prompt "));
}

TEST(Chat, WhatDoesNotFitLeavesTheHistoryAlone) {
  std::string longer = "x";
  for (int i = 0; i < 600; ++i) longer += " word";
  const Outcome outcome =
      run(chat({"--json"}), {.input = "Call me\n" + longer + "\n/reset\nCall me\n"});
  EXPECT_EQ(outcome.exit_code, 2) << "a turn has failed";
  EXPECT_THAT(outcome.err, HasSubstr("/reset begins anew"));
  EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1);
  const auto turns = turns_of(outcome);
  ASSERT_EQ(turns.size(), 2u);
  EXPECT_EQ(turns[0]["text"], turns[1]["text"]);
}

TEST(Chat, AFullContextEndsTheAnswerNotTheChat) {
  const Outcome outcome =
      run({"chat", kModel, "--quiet", "--ctx", "40", "-n", "400", "--ignore-eos", "--temp", "0"},
          {.input = "Call me\n/reset\nCall me\n"});
  EXPECT_EQ(outcome.exit_code, 0);
  const std::string line = "the context is full, the answer ends here";
  EXPECT_THAT(outcome.err, HasSubstr(line));
  EXPECT_NE(outcome.err.find(line), outcome.err.rfind(line)) << "twice";
}

TEST(Chat, AFileWithoutATemplateSaysSo) {
  const TempFolder folder;
  std::string bytes = file_bytes(kModel);
  const std::string key = "tokenizer.chat_template";
  bytes.replace(bytes.find(key), key.size(), "tokenizer.no_t_template");
  const std::string bare = folder.write("bare.gguf", bytes);
  const Outcome chatml = run({"chat", bare, "-n", "2", "--temp", "0"}, {.input = "Call me\n"});
  EXPECT_EQ(chatml.exit_code, 0);
  EXPECT_THAT(chatml.err, HasSubstr("ChatML"));

  const std::string mark = "<|im_start|>";
  bytes.replace(bytes.find(mark), mark.size(), "<|im_xxxxx|>");
  const Outcome none = run({"chat", folder.write("none.gguf", bytes)}, {.input = "Call me\n"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.err, HasSubstr("has no chat template"));
  EXPECT_EQ(std::ranges::count(none.err, '\n'), 1);
}

TEST(Chat, CtrlCStopsAnAnswerAndThenTheChat) {
  Program program({"chat", kModel, "--quiet", "--ctx", "8000", "-n", "7000", "--ignore-eos",
                   "--isa", "ref", "--threads", "1", "--moe-stream-cache", "4s"},
                  {.input = "Call me\n", .input_stays_open = true});
  ASSERT_TRUE(program.wait_for_output(" "));
  program.send(SIGINT);
  ASSERT_TRUE(program.wait_for_output("\n"));
  std::this_thread::sleep_for(std::chrono::milliseconds(1000));
  program.send(SIGINT);
  const Outcome outcome = program.finish();
  EXPECT_EQ(outcome.exit_code, 130);
  EXPECT_EQ(outcome.err, "sluice: interrupted\n");
}

TEST(Chat, ATurnThatFailsIsNotTheEnd) {
  const TempFolder folder;
  const std::string path = folder.write("cut.gguf", file_bytes(kModel));
  Program program({"chat", path, "--quiet", "--ctx", "8000", "-n", "7000", "--ignore-eos", "--isa",
                   "ref", "--threads", "1", "--moe-stream-cache", "4s"},
                  {.input = "Call me\n/stats\n"});
  ASSERT_TRUE(program.wait_for_output(" "));
  std::filesystem::resize_file(path, 4 << 20);
  const Outcome outcome = program.finish();
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr(path));
  EXPECT_THAT(outcome.err, HasSubstr("all 0: ")) << "the chat went on";
}

}  // namespace
}  // namespace sluice::cli_test
