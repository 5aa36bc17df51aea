#include "experts/routing_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <optional>

#include "base/half.h"
#include "experts/routing_trace_reader.h"
#include "experts/routing_trace_writer.h"
#include "testing/byte_surgery.h"
#include "testing/temp_folder.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string bytes_at(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TraceHeader small_header() {
  return {.expert_counts = {0, 4, 4},
          .used_count = 2,
          .distance_max = 2,
          .has_scores = true,
          .model_hash = 0x1122334455667788,
          .name = "tiny"};
}

/// A prompt of three tokens, then two decode steps with predictions and scores.
std::string small_trace(const TempFolder& folder, const TraceHeader& header = small_header()) {
  const std::string path = folder.path() + "/small.trace";
  auto writer = RoutingTraceWriter::create(path, header);
  EXPECT_TRUE(writer.ok());
  (*writer)->begin(StepKind::prompt, 3);
  (*writer)->routing(1, std::vector<int32_t>{0, 1, 2, 3, 1, 0});
  (*writer)->routing(2, std::vector<int32_t>{3, 2, 3, 2, 3, 2});
  (*writer)->end();
  for (int32_t step = 0; step < 2; ++step) {
    (*writer)->begin(StepKind::decode, 1);
    (*writer)->predicted(1, 2, std::vector<uint32_t>{3});
    (*writer)->routing(1, std::vector<int32_t>{step, 3});
    (*writer)->scores(1, 0, std::vector<float>{0.5f, -1, 2, 65504});
    (*writer)->weights(1, std::vector<float>{0.75f, 0.25f});
    (*writer)->predicted(2, 1, std::vector<uint32_t>{0, 1, 2});
    (*writer)->scores(2, 1, std::vector<float>{0, 0, 0, 1});
    (*writer)->routing(2, std::vector<int32_t>{2, step});
    (*writer)->end();
  }
  EXPECT_TRUE((*writer)->close().ok());
  return bytes_at(path);
}

struct Reading {
  std::vector<TraceStep> steps;
  std::optional<Error> error;
  bool cut_short = false;
};

Reading read_all(std::string_view bytes) {
  Reading reading;
  auto reader = RoutingTraceReader::parse(as_byte_span(bytes), "x.trace");
  if (!reader) {
    reading.error = reader.error();
    return reading;
  }
  TraceStep step;
  while (true) {
    const auto more = reader->next(step);
    if (!more) reading.error = more.error();
    if (!more || !*more) break;
    reading.steps.push_back(step);
  }
  reading.cut_short = reader->is_cut_short();
  return reading;
}

TEST(RoutingTrace, GivesBackWhatWasWritten) {
  const TempFolder folder;
  small_trace(folder);
  auto reader = RoutingTraceReader::open(folder.path() + "/small.trace");
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ(reader->header(), small_header());
  TraceStep step;
  ASSERT_TRUE(*reader->next(step));
  EXPECT_EQ(step.kind, StepKind::prompt);
  EXPECT_EQ(step.token_count, 3u);
  ASSERT_EQ(step.routings.size(), 2u);
  EXPECT_THAT(step.ids_of(step.routings[0]), ElementsAre(0, 1, 2, 3, 1, 0));
  EXPECT_EQ(step.routings[1].layer, 2u);
  EXPECT_TRUE(step.predictions.empty());
  ASSERT_TRUE(*reader->next(step));
  ASSERT_TRUE(*reader->next(step));
  EXPECT_EQ(step.kind, StepKind::decode);
  EXPECT_THAT(step.ids_of(step.routings[0]), ElementsAre(1, 3));
  ASSERT_EQ(step.predictions.size(), 2u);
  EXPECT_EQ(step.predictions[0].distance, 2u);
  EXPECT_THAT(step.ids_of(step.predictions[0]), ElementsAre(3));
  EXPECT_THAT(step.ids_of(step.predictions[1]), ElementsAre(0, 1, 2));
  EXPECT_EQ(step.score_records, 3u);
  EXPECT_FALSE(*reader->next(step));
  EXPECT_FALSE(reader->is_cut_short());
}

TEST(RoutingTrace, HasTheBytesOfTheDocument) {
  const TempFolder folder;
  TraceHeader header = small_header();
  header.has_scores = false;
  const std::string bytes = small_trace(folder, header);
  const std::string expected =
      std::string("sluiceRT", 8) + bytes_of(uint32_t{1}) + bytes_of(uint32_t{3}) +
      bytes_of(uint32_t{2}) + bytes_of(uint32_t{2}) + bytes_of(uint32_t{0}) +
      bytes_of(uint32_t{4}) + bytes_of(uint64_t{0x1122334455667788}) + bytes_of(uint32_t{0}) +
      bytes_of(uint32_t{4}) + bytes_of(uint32_t{4}) + "tiny" + std::string("\1\0\0\0\3\0\0\0", 8) +
      std::string("\3\0\1\0\0\0\0\0\0\1\2\3\1\0", 14) +
      std::string("\3\0\2\0\0\0\0\0\3\2\3\2\3\2", 14) + std::string("\7\0\0\0\0\0\0\0", 8) +
      std::string("\2\0\0\0\1\0\0\0", 8) + std::string("\4\2\1\0\1\0\0\0\3", 9);
  EXPECT_EQ(bytes.substr(0, expected.size()), expected);
}

TEST(RoutingTrace, ManyExpertsTakeTwoBytes) {
  const TempFolder folder;
  const std::string path = folder.path() + "/wide.trace";
  auto writer =
      RoutingTraceWriter::create(path, {.expert_counts = {300}, .used_count = 2, .name = ""});
  (*writer)->begin(StepKind::decode, 1);
  (*writer)->routing(0, std::vector<int32_t>{299, 7});
  (*writer)->scores(0, 0, std::vector<float>(300));  // not wanted: nothing is written
  (*writer)->end();
  ASSERT_TRUE((*writer)->close().ok());
  const Reading reading = read_all(bytes_at(path));
  ASSERT_EQ(reading.steps.size(), 1u);
  EXPECT_THAT(reading.steps[0].ids, ElementsAre(299, 7));
  EXPECT_EQ(reading.steps[0].score_records, 0u);
}

TEST(RoutingTrace, AFileCutAnywhereGivesItsCompleteSteps) {
  const TempFolder folder;
  const std::string bytes = small_trace(folder);
  const size_t header_bytes = 40 + 3 * 4 + 4;
  size_t whole = 0;
  for (size_t length = header_bytes; length <= bytes.size(); ++length) {
    const Reading reading = read_all(std::string_view(bytes).substr(0, length));
    EXPECT_FALSE(reading.error) << length;
    EXPECT_GE(reading.steps.size(), whole) << length;
    EXPECT_EQ(reading.cut_short, length != header_bytes && reading.steps.size() == whole)
        << length << ": complete only where a step has just ended";
    whole = reading.steps.size();
  }
  EXPECT_EQ(whole, 3u);
  for (size_t length = 0; length < header_bytes; ++length)
    EXPECT_TRUE(read_all(std::string_view(bytes).substr(0, length)).error) << length;
}

TEST(RoutingTrace, NoDamagedByteDoesHarm) {
  const TempFolder folder;
  const std::string bytes = small_trace(folder);
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (const int change : {1, 2, 0x40, 0x80, 0xff}) {
      std::string damaged = bytes;
      damaged[at] = static_cast<char>(damaged[at] ^ change);
      const Reading reading = read_all(damaged);
      if (reading.error) {
        EXPECT_EQ(reading.error->message.find('\n'), std::string::npos);
        EXPECT_THAT(reading.error->message, HasSubstr("x.trace"));
      }
      for (const TraceStep& step : reading.steps)
        for (const uint16_t id : step.ids) EXPECT_LT(id, 1024u) << at;
    }
  }
}

TEST(RoutingTrace, ErrorsNameThePlace) {
  const TempFolder folder;
  const std::string bytes = small_trace(folder);
  std::string damaged = bytes;
  damaged[56 + 8 + 8 + 2] = 4;  // behind the header, a step and a routing's head: an id
  const auto error = read_all(damaged).error;
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind, ErrorKind::corrupt);
  EXPECT_EQ(error->message, "x.trace: at byte 64: layer 1: expert 4 of 4");
  EXPECT_THAT(read_all("sluiceRx and more").error->message, HasSubstr("not a routing trace"));
  EXPECT_EQ(read_all(replaced(bytes, "sluiceRT\1", "sluiceRT\2")).error->kind,
            ErrorKind::unsupported);
}

TEST(RoutingTrace, AnAbandonedStepDoesNotCount) {
  const TempFolder folder;
  const std::string path = folder.path() + "/a.trace";
  auto writer =
      RoutingTraceWriter::create(path, {.expert_counts = {4}, .used_count = 1, .name = ""});
  (*writer)->begin(StepKind::decode, 1);
  (*writer)->routing(0, std::vector<int32_t>{1});
  (*writer)->abandon();
  (*writer)->begin(StepKind::decode, 1);
  (*writer)->routing(0, std::vector<int32_t>{2});
  (*writer)->end();
  ASSERT_TRUE((*writer)->close().ok());
  const Reading reading = read_all(bytes_at(path));
  ASSERT_EQ(reading.steps.size(), 1u);
  EXPECT_THAT(reading.steps[0].ids, ElementsAre(2));
}

TEST(RoutingTrace, AFullDriveEndsTheRecordingAndNothingElse) {
  EXPECT_THAT(RoutingTraceWriter::create("/no/such/folder/x", small_header()).error().message,
              HasSubstr("/no/such/folder/x: cannot write the trace: No such file"));
  EXPECT_FALSE(RoutingTraceWriter::create("/dev/full", small_header()).ok());
}

/// The name of the model, given in error, must not be its end.
TEST(RoutingTrace, OnlyATraceIsWrittenOver) {
  const TempFolder folder;
  for (const std::string_view content : {"GGUF and so on", "x"}) {
    const std::string path = folder.write("other", content);
    const auto writer = RoutingTraceWriter::create(path, small_header());
    ASSERT_FALSE(writer.ok());
    EXPECT_EQ(writer.error().kind, ErrorKind::usage);
    EXPECT_THAT(writer.error().message, HasSubstr(path + " is no routing trace and stays"));
    EXPECT_EQ(bytes_at(path), content);
  }
  for (const std::string_view content : {"", "sluiceRT of a day before"})
    EXPECT_TRUE(RoutingTraceWriter::create(folder.write("own", content), small_header()).ok());
}

TEST(RoutingTrace, ALongRecordingGoesThroughTheBufferInPieces) {
  const TempFolder folder;
  const std::string path = folder.path() + "/long.trace";
  auto writer =
      RoutingTraceWriter::create(path, {.expert_counts = {200}, .used_count = 8, .name = ""});
  std::vector<int32_t> ids(8);
  for (int32_t step = 0; step < 30000; ++step) {
    (*writer)->begin(StepKind::decode, 1);
    for (int32_t& id : ids) id = (step + id + 1) % 200;
    (*writer)->routing(0, ids);
    (*writer)->end();
  }
  ASSERT_TRUE((*writer)->close().ok());
  auto reader = RoutingTraceReader::open(path);
  TraceStep step;
  std::vector<uint16_t> expected(8);
  for (int32_t i = 0; i < 30000; ++i) {
    ASSERT_TRUE(*reader->next(step)) << i;
    for (uint16_t& id : expected) id = static_cast<uint16_t>((i + id + 1) % 200);
    ASSERT_EQ(step.ids, expected) << i;
  }
  EXPECT_FALSE(*reader->next(step));
}

TEST(RawTrace, IsReadByItsLayout) {
  const TempFolder folder;
  const std::string path = folder.write("ids.u8", std::string("\1\2\3\0\2\1\0\3", 8));
  auto reader = RoutingTraceReader::open_raw(path, {2, 4, 2});
  ASSERT_TRUE(reader.ok());
  TraceStep step;
  ASSERT_TRUE(*reader->next(step));
  EXPECT_THAT(step.ids_of(step.routings[1]), ElementsAre(3, 0));
  ASSERT_TRUE(*reader->next(step));
  EXPECT_THAT(step.ids_of(step.routings[0]), ElementsAre(2, 1));
  EXPECT_FALSE(*reader->next(step));
  EXPECT_FALSE(reader->is_cut_short());
}

TEST(RawTrace, RefusesWhatDoesNotFit) {
  const TempFolder folder;
  const std::string path = folder.write("ids.u8", std::string("\1\2\3\0\2\1\0\3", 8));
  EXPECT_THAT(RoutingTraceReader::open_raw(path, {3, 4, 2}).error().message,
              HasSubstr("not a whole number of tokens of 6 bytes"));
  EXPECT_FALSE(RoutingTraceReader::open_raw(path, {2, 4, 0}).ok());
  EXPECT_FALSE(RoutingTraceReader::open_raw(path, {2, 1, 2}).ok());
  auto reader = RoutingTraceReader::open_raw(path, {2, 3, 2});
  TraceStep step;
  EXPECT_THAT(reader->next(step).error().message, HasSubstr("at byte 2: layer 1: expert 3 of 3"));
}

}  // namespace
}  // namespace sluice
