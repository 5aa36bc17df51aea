// sluice trace: its tables, its JSON and its refusals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "experts/routing_trace_writer.h"
#include "testing/temp_folder.h"
#include "tests/cli/program.h"

namespace sluice::cli_test {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

/// A folder with a recording of 60 decode steps, every second predicted, and with bare ids.
class Trace : public ::testing::Test {
 protected:
  Trace() {
    auto writer = RoutingTraceWriter::create(
        path_,
        {.expert_counts = {0, 8, 8}, .used_count = 2, .distance_max = 2, .name = "a\nmodel"});
    for (int32_t step = 0; step < 60; ++step) {
      (*writer)->begin(StepKind::decode, 1);
      for (uint32_t layer = 1; layer < 3; ++layer) {
        const int32_t first = step * 3 % 8;
        if (step % 2 == 0)
          (*writer)->predicted(layer, 1, std::vector<uint32_t>{static_cast<uint32_t>(first), 0});
        (*writer)->routing(layer, std::vector<int32_t>{first, (first + 1) % 8});
      }
      (*writer)->end();
    }
    EXPECT_TRUE((*writer)->close().ok());
  }

  void expect_refusal(const std::vector<std::string>& words, int exit_code,
                      const std::string& part) {
    const Outcome outcome = run(words);
    EXPECT_EQ(outcome.exit_code, exit_code) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_TRUE(outcome.err.starts_with("sluice: ")) << outcome.err;
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(part));
  }

  const TempFolder folder_;
  const std::string path_ = folder_.path() + "/routing.trace";
  const std::string raw_ = folder_.write("ids.u8", std::string("\0\1\2\3\1\2\3\0", 8));
};

TEST_F(Trace, InfoSaysWhatARecordingHolds) {
  const Outcome outcome = run({"trace", "info", path_});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  EXPECT_THAT(outcome.out, HasSubstr("  model         a?model\n"));
  EXPECT_THAT(outcome.out,
              HasSubstr("  layers        3, 2 of them with up to 8 experts, 2 used\n"));
  EXPECT_THAT(outcome.out, HasSubstr("  decode        60 tokens\n"));
  EXPECT_THAT(outcome.out, HasSubstr("  distance 1    "));
}

TEST_F(Trace, InfoAsJson) {
  const json object = json::parse(run({"trace", "info", path_, "--json"}).out);
  EXPECT_EQ(object["decode_tokens"], 60);
  EXPECT_EQ(object["lookups"], 60 * 2 * 2);
  EXPECT_EQ(object["experts"], 8);
  EXPECT_EQ(object["cut_short"], false);
  ASSERT_EQ(object["lookahead"].size(), 1u);
  EXPECT_EQ(object["lookahead"][0]["lookups"], 30 * 2 * 2);
}

TEST_F(Trace, ReplayShowsEveryPolicyBesideBelady) {
  const Outcome outcome = run({"trace", "replay", path_, "--slots", "2,4"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const std::string part :
       {"layer pool\n", "lru", "decay", "contest", "belady", "of Belady", "foreseen 1", "50.0 %"})
    EXPECT_THAT(outcome.out, HasSubstr(part));
}

TEST_F(Trace, ReplayAsJsonAddsUp) {
  const json object = json::parse(
      run({"trace", "replay", path_, "--slots", "2,4", "--pool", "ring", "--json"}).out);
  EXPECT_EQ(object["pool"], "ring");
  ASSERT_EQ(object["rows"].size(), 8u);
  for (const json& row : object["rows"]) {
    EXPECT_EQ(row["lookups"], 240);
    EXPECT_NEAR(row["hit_rate"], 1 - row["misses"].get<double>() / 240, 1e-12);
    EXPECT_GE(row["of_belady"], 1.0);
    EXPECT_EQ(row["decode_misses"], row["misses"]);
    EXPECT_LE(row["lookahead"][0]["foreseen_misses"], row["misses"]);
  }
  EXPECT_EQ(object["rows"][0]["policy"], "lru");
  EXPECT_EQ(object["rows"][0]["of_lru"], 1.0);
}

TEST_F(Trace, OnlyWhatWasAskedFor) {
  const json object = json::parse(
      run({"trace", "replay", path_, "--slots", "3", "--evict", "belady,lru", "--json"}).out);
  ASSERT_EQ(object["rows"].size(), 2u);
  EXPECT_EQ(object["rows"][1]["policy"], "belady");
}

TEST_F(Trace, BareIdsAreReadByTheirLayout) {
  const json object = json::parse(
      run({"trace", "info", raw_, "--layers", "2", "--experts", "4", "--used", "2", "--json"}).out);
  EXPECT_EQ(object["decode_tokens"], 2);
  EXPECT_EQ(object["lookups"], 8);
}

TEST_F(Trace, AnInterruptedRecordingIsReadUpToItsLastStep) {
  const std::string bytes = file_bytes(path_);
  const std::string cut = folder_.write("cut.trace", bytes.substr(0, bytes.size() - 5));
  const json object = json::parse(run({"trace", "info", cut, "--json"}).out);
  EXPECT_EQ(object["decode_tokens"], 59);
  EXPECT_EQ(object["cut_short"], true);
}

TEST_F(Trace, Refusals) {
  expect_refusal({"trace"}, 2, "see 'sluice trace --help'");
  expect_refusal({"trace", "rewind"}, 2, "there is no command 'rewind'");
  expect_refusal({"trace", "info", "no/such.trace"}, 1, "no/such.trace");
  expect_refusal({"trace", "info", model_path()}, 1, "not a routing trace");
  expect_refusal({"trace", "replay", raw_}, 1, "--layers, --experts and --used");
  expect_refusal({"trace", "info", raw_, "--layers", "2"}, 2, "--layers requires --experts");
  expect_refusal({"trace", "info", raw_, "--layers", "3", "--experts", "4", "--used", "2"}, 1,
                 "not a whole number of tokens");
  expect_refusal({"trace", "replay", path_, "--slots", "1"}, 2, "--slots 1");
  expect_refusal({"trace", "replay", path_, "--slots", "4,x"}, 2, "'x' is not allowed");
  expect_refusal({"trace", "replay", path_, "--slots", "4,"}, 2, "'' is not allowed");
  expect_refusal({"trace", "replay", path_, "--evict", "fifo"}, 2, "lru, decay, contest, belady");
  expect_refusal({"trace", "replay", path_, "--pool", "lake"}, 2, "give layer or ring");
  expect_refusal({"trace", "replay", path_, "--what"}, 2, "see 'sluice trace replay --help'");
  std::string bytes = file_bytes(path_);
  bytes[59] = '\x55';  // behind the header: the kind of the first record
  const std::string damaged = folder_.write("damaged.trace", bytes);
  expect_refusal({"trace", "info", damaged}, 1, "at byte 59: unknown record 85");
}

TEST_F(Trace, HelpNamesItsOptions) {
  const std::string help = run({"trace", "replay", "--help"}).out;
  EXPECT_THAT(help, HasSubstr("Usage:\n  sluice trace replay FILE [options]\n"));
  for (const std::string option :
       {"--slots", "--evict", "--pool", "--layers", "--experts", "--used", "--json"})
    EXPECT_THAT(help, HasSubstr(option + " "));
  const std::string document = file_bytes(SLUICE_SOURCE_DIR "/docs/cli.md");
  EXPECT_THAT(document, HasSubstr("### trace"));
}

}  // namespace
}  // namespace sluice::cli_test
