// The tool that fits a correction, as docs/lookahead.md has it used.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "testing/temp_folder.h"
#include "tests/cli/program.h"

namespace sluice::cli_test {
namespace {

using ::testing::HasSubstr;

/// Runs a shell command; its standard output and standard error, mixed.
std::string shell(const std::string& command, int& exit_code) {
  std::FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  EXPECT_NE(pipe, nullptr);
  std::string output;
  for (char piece[4096]; const size_t count = std::fread(piece, 1, sizeof(piece), pipe);)
    output.append(piece, count);
  exit_code = pclose(pipe) / 256;
  return output;
}

/// A Python that has numpy; empty where there is none.
std::string python() {
  for (const char* name : {"python3", "/usr/bin/python3"}) {
    int exit_code = 1;
    shell(std::string(name) + " -c 'import numpy'", exit_code);
    if (exit_code == 0) return name;
  }
  return {};
}

class TrainCorrection : public ::testing::Test {
 protected:
  void SetUp() override {
    python_ = python();
    if (python_.empty()) GTEST_SKIP() << "needs Python 3 with numpy";
  }

  /// Decodes 1,100 tokens one by one with more options.
  void record(std::vector<std::string> more) {
    std::string ids = "34";
    for (int token = 1; token < 1100; ++token) ids += fmt::format(",{}", token * 37 % 4000 + 20);
    more.insert(more.begin(), {"eval", model_path(), "--tokens-file", folder_.write("ids", ids)});
    more.insert(more.end(), {"--steps", "--ctx", "1100", "--logits", "/dev/null", "--quiet"});
    more.insert(more.end(), {"--moe-stream-trace", trace_, "--moe-stream-trace-scores", "on"});
    ASSERT_EQ(run(more).exit_code, 0);
  }
  std::string train(int& exit_code) {
    return shell(
        python_ + " " + SLUICE_SOURCE_DIR + "/tools/train_correction " + trace_ + " " + out_,
        exit_code);
  }

  const TempFolder folder_;
  const std::string trace_ = folder_.path() + "/trace";
  const std::string out_ = folder_.path() + "/correction";
  std::string python_;
};

TEST_F(TrainCorrection, FitsWhatARunUses) {
  record({"--moe-stream-lookahead", "3", "--moe-stream-governor", "off"});
  int exit_code = 1;
  const std::string report = train(exit_code);
  ASSERT_EQ(exit_code, 0) << report;
  EXPECT_THAT(report, HasSubstr("18 maps")) << "7, 6 and 5 of 8 layers";
  const Outcome used = run({"run", model_path(), "-p", "Call me", "-n", "12", "--temp", "0",
                            "--quiet", "--moe-stream-correction", out_});
  EXPECT_EQ(used.out, ", and I will give thee a reward for thee. And\n") << used.err;
}

/// Maps fitted to a few tokens would make guesses worse.
TEST_F(TrainCorrection, RefusesARecordingWithFewPredictions) {
  record({"--moe-stream-lookahead", "0"});
  int exit_code = 0;
  const std::string report = train(exit_code);
  EXPECT_EQ(exit_code, 1);
  EXPECT_TRUE(report.starts_with("error: " + trace_ + ": too few predictions; ")) << report;
  EXPECT_EQ(std::ranges::count(report, '\n'), 1) << report;
}

}  // namespace
}  // namespace sluice::cli_test
