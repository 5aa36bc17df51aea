// What happens when a run is disturbed: Ctrl-C, a reader that goes away, a file that is cut while
// it is read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>

#include <fmt/format.h>

#include "testing/temp_folder.h"
#include "tests/cli/program.h"

namespace sluice::cli_test {
namespace {

using ::testing::HasSubstr;

const std::string kModel = model_path();
constexpr double kQuickly = 3;  // seconds; far more than it takes, far less than the whole run

/// A run of minutes: a prompt of 3000 tokens, one thread, no vector instructions.
std::vector<std::string> endless_prompt() {
  const std::string tokens = fmt::format("{}", fmt::join(std::vector<int>(3000, 100), ","));
  return {"run", kModel, "--tokens", tokens, "--ctx", "4096", "--isa", "ref", "--threads", "1"};
}

/// A run of many seconds that prints all the time.
std::vector<std::string> endless_text(const std::string& model) {
  return {"run",  model,          "-p",    "Call me", "-n",        "4000", "--ctx",
          "8000", "--ignore-eos", "--isa", "ref",     "--threads", "1",    "--moe-stream-cache",
          "4s",   "--quiet"};
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Sends the signal and expects exit code 130, soon.
Outcome interrupt(Program& program, int signal) {
  const auto start = std::chrono::steady_clock::now();
  program.send(signal);
  const Outcome outcome = program.finish();
  EXPECT_EQ(outcome.exit_code, 130);
  EXPECT_LT(seconds_since(start), kQuickly);
  return outcome;
}

TEST(Interrupt, EndsAPrompt) {
  Program program(endless_prompt());
  ASSERT_TRUE(program.wait_for_error("memory budget"));  // the last line before the prompt
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const Outcome outcome = interrupt(program, SIGINT);
  EXPECT_THAT(outcome.err, HasSubstr("\nsluice: interrupted\n"));
  EXPECT_EQ(outcome.out, "");
}

TEST(Interrupt, EndsTextAndKeepsWhatWasPrinted) {
  Program program(endless_text(kModel));
  ASSERT_TRUE(program.wait_for_output("\n"));  // some text, well into decoding
  const Outcome outcome = interrupt(program, SIGINT);
  EXPECT_EQ(outcome.err, "sluice: interrupted\n");
  EXPECT_TRUE(outcome.out.ends_with('\n'));
}

TEST(Interrupt, TerminationIsTheSame) {
  Program program(endless_text(kModel));
  ASSERT_TRUE(program.wait_for_output(" "));
  EXPECT_EQ(interrupt(program, SIGTERM).err, "sluice: interrupted\n");
}

TEST(Interrupt, TwiceEndsAtOnce) {
  Program program(endless_prompt());
  ASSERT_TRUE(program.wait_for_error("memory budget"));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  program.send(SIGINT);
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  interrupt(program, SIGINT);
}

TEST(Interrupt, EndsTheWaitingForInput) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"run", kModel, "-f", "-"}, {"tokenize", kModel, "-"}}) {
    Program program(words, {.input = "some of it", .input_stays_open = true});
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    EXPECT_EQ(interrupt(program, SIGINT).err, "sluice: interrupted\n");
  }
}

TEST(StandardOutput, AReaderThatGoesAwayEndsTheRun) {
  Program program(endless_text(kModel));
  ASSERT_TRUE(program.wait_for_output(" "));
  program.close_output();
  const Outcome outcome = program.finish();
  EXPECT_EQ(outcome.signal, 0);
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcome.err, "sluice: standard output: cannot write: Broken pipe\n");
}

const std::vector<std::vector<std::string>> kPrinting{
    {"run", kModel, "-p", "Call me", "-n", "2", "--quiet"},
    {"run", kModel, "-p", "Call me", "-n", "2", "--quiet", "--json"},
    {"demo", "-n", "2", "--quiet"},
    {"demo", "--licence"},
    {"bench", kModel, "--prompt", "4", "--gen", "1", "--reps", "1", "--quiet"},
    {"tokenize", kModel, "-p", "x"},
    {"detokenize", kModel, "--tokens", "100"},
    {"inspect", kModel},
    {"inspect", kModel, "--json"},
    {"--help"},
    {"run", "--help"},
    {"--version"},
    {"--isa", "list"}};

TEST(StandardOutput, AFullDiskIsAnError) {
  for (const auto& words : kPrinting) {
    const Outcome outcome = run(words, {.output = Output::full_disk});
    EXPECT_EQ(outcome.exit_code, 1) << fmt::format("{}", fmt::join(words, " "));
    EXPECT_EQ(outcome.err, "sluice: standard output: cannot write: No space left on device\n");
  }
}

TEST(StandardOutput, AClosedOneIsAnErrorAndNeverAnotherFile) {
  for (const auto& words : kPrinting) {
    const Outcome outcome = run(words, {.output = Output::closed});
    EXPECT_EQ(outcome.exit_code, 1) << fmt::format("{}", fmt::join(words, " "));
    EXPECT_EQ(outcome.err, "sluice: standard output: cannot write: Bad file descriptor\n");
  }
  const TempFolder folder;
  const std::string logits = folder.path() + "/logits";
  const Outcome eval = run({"eval", kModel, "--tokens", "1", "--logits", logits, "--quiet"},
                           {.output = Output::closed});
  EXPECT_EQ(eval.exit_code, 1);
  EXPECT_EQ(file_bytes(logits).size(), size_t{4096} * 4) << "the logits and no word more";
}

TEST(StandardError, AClosedOneChangesNothing) {
  const TempFolder folder;
  const std::string logits = folder.path() + "/logits";
  const Outcome eval =
      run({"eval", kModel, "--tokens", "1", "--logits", logits, "-v"}, {.error = Output::closed});
  EXPECT_EQ(eval.exit_code, 0);
  EXPECT_EQ(file_bytes(logits).size(), size_t{4096} * 4) << "the logits and no line of the log";
}

TEST(StandardError, OneThatCannotBeWrittenChangesNothing) {
  for (const Output error : {Output::closed, Output::full_disk}) {
    const Outcome done = run({"run", kModel, "--tokens", "34,409", "-n", "2"}, {.error = error});
    EXPECT_EQ(done.exit_code, 0) << "the statistics are lost";
    EXPECT_NE(done.out, "");
    EXPECT_EQ(run({"run", "no.gguf", "-p", "x"}, {.error = error}).exit_code, 1);
    EXPECT_EQ(run({"--nonsense"}, {.error = error}).exit_code, 2);
  }
}

TEST(ReadError, AModelCutWhileItRunsEndsTheRequest) {
  const TempFolder folder;
  const std::string path = folder.write("cut.gguf", file_bytes(kModel));
  Program program(endless_text(path));  // with room for the experts of one token only
  ASSERT_TRUE(program.wait_for_output(" "));
  std::filesystem::resize_file(path, 4 << 20);
  const Outcome outcome = program.finish();
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcome.signal, 0);
  EXPECT_THAT(outcome.err, HasSubstr(path));
  EXPECT_TRUE(outcome.err.starts_with("sluice: ")) << outcome.err;
  EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
  EXPECT_TRUE(outcome.out.ends_with('\n')) << "the text so far is kept";
}

}  // namespace
}  // namespace sluice::cli_test
