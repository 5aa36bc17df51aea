#include "testing/fake_drive.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <set>

#include "base/units.h"
#include "os/arena.h"
#include "testing/fake_drive_kinds.h"
#include "testing/random_bytes.h"

namespace sluice {
namespace {

constexpr uint64_t kSector = 4096;
constexpr uint64_t kBufferBytes = 8 * kSector;
constexpr size_t kBufferCount = 64;

class FakeDriveTest : public ::testing::Test {
 protected:
  FakeDrive make(FakeDriveOptions options) const { return FakeDrive(std::move(options), files_); }

  std::byte* buffer(size_t index) const { return buffers_.begin() + index * kBufferBytes; }

  os::ReadOp op(uint64_t offset, size_t buffer_index, uint64_t bytes = kBufferBytes) const {
    return {.file = 0,
            .offset = offset,
            .buffer = buffer(buffer_index),
            .bytes = static_cast<uint32_t>(bytes),
            .tag = buffer_index};
  }

  /// Submits and returns the results by tag.
  static std::map<uint64_t, int64_t> run(FakeDrive& drive, const std::vector<os::ReadOp>& ops) {
    drive.submit(ops);
    std::map<uint64_t, int64_t> results;
    while (drive.in_flight_count() > 0) {
      os::ReadCompletion done = {};
      EXPECT_EQ(drive.poll({&done, 1}, true), 1u);
      EXPECT_TRUE(results.emplace(done.tag, done.result).second);
    }
    return results;
  }

  int64_t run_one(FakeDrive& drive, const os::ReadOp& one) const {
    return run(drive, {one}).at(one.tag);
  }

  bool has_data(const os::ReadOp& read, size_t bytes) const {
    return std::memcmp(read.buffer, files_[read.file].data() + read.offset, bytes) == 0;
  }

  const std::vector<std::vector<std::byte>> files_ = {random_bytes(100 * kSector + 17, 1)};
  os::Arena buffers_ = *os::Arena::allocate(kBufferCount * kBufferBytes, "a test");
};

TEST_F(FakeDriveTest, ReadsWhatTheFilesHold) {
  FakeDrive drive = make({});
  const auto whole = op(3 * kSector, 0);
  const auto last = op(96 * kSector, 1);
  const auto past = op(101 * kSector, 2);
  auto other_file = op(0, 3);
  other_file.file = 1;
  const auto results = run(drive, {whole, last, past, other_file});
  EXPECT_EQ(results.at(0), int64_t{kBufferBytes});
  EXPECT_TRUE(has_data(whole, kBufferBytes));
  EXPECT_EQ(results.at(1), int64_t{4 * kSector + 17});
  EXPECT_TRUE(has_data(last, 4 * kSector + 17));
  EXPECT_EQ(results.at(2), 0);
  EXPECT_EQ(results.at(3), -EBADF);
  EXPECT_EQ(drive.log().size(), 4u);
  EXPECT_EQ(drive.misaligned_count() + drive.touched_count(), 0u);
}

// 32 KiB at 2 bytes/ns are 16384 ns on the wire.
const FakeDriveOptions kSimpleDrive = {.latency_ns = 50'000, .bytes_per_ns = 2.0};
constexpr uint64_t kWireNs = 16'384;

TEST_F(FakeDriveTest, OneReadAtATimeIsBoundByLatency) {
  FakeDrive drive = make(kSimpleDrive);
  for (uint64_t i = 1; i <= 5; ++i) {
    run_one(drive, op(0, 0));
    EXPECT_EQ(drive.now_ns(), i * (50'000 + kWireNs));
  }
}

TEST_F(FakeDriveTest, ManyReadsAreBoundByTheWire) {
  FakeDrive drive = make(kSimpleDrive);
  std::vector<os::ReadOp> ops;
  for (size_t i = 0; i < 10; ++i) ops.push_back(op(0, i));
  run(drive, ops);
  EXPECT_EQ(drive.now_ns(), 50'000 + 10 * kWireNs);
}

TEST_F(FakeDriveTest, ReadsBeyondTheServicePlacesWait) {
  FakeDriveOptions options = kSimpleDrive;
  options.service_max = 1;
  FakeDrive drive = make(options);
  run(drive, {op(0, 0), op(0, 1), op(0, 2)});
  EXPECT_EQ(drive.now_ns(), 3 * (50'000 + kWireNs));
}

TEST_F(FakeDriveTest, WhatIsAnsweredTogetherWaitsForWhateverJoins) {
  FakeDriveOptions options = kSimpleDrive;
  options.answers_together = true;
  FakeDrive drive = make(options);
  const auto first = op(0, 0), second = op(0, 1), third = op(0, 2), later = op(0, 3);
  drive.submit({&first, 1});
  drive.submit({&second, 1});
  drive.advance(50'000 + kWireNs);
  os::ReadCompletion done = {};
  EXPECT_EQ(drive.poll({&done, 1}, false), 0u) << "the first is read, and nobody is told";
  drive.submit({&third, 1});
  run(drive, {});
  for (size_t i = 0; i < 3; ++i)
    EXPECT_EQ(drive.log()[i].finished_ns, drive.log()[2].finished_ns) << i;
  EXPECT_GE(drive.now_ns(), 50'000 + 3 * kWireNs);
  const uint64_t before = drive.log()[0].finished_ns;
  run(drive, {later});
  EXPECT_EQ(drive.log()[0].finished_ns, before) << "an answer given stays given";
}

TEST_F(FakeDriveTest, AReadWaitsForThoseBeforeItOnTheWire) {
  // A chunk four times the size, submitted a little earlier, and then one that somebody waits for.
  FakeDrive drive = make(kSimpleDrive);
  const auto chunk = op(0, 0), wanted = op(0, 1, kBufferBytes / 4);
  drive.submit({&chunk, 1});
  drive.advance(10'000);
  drive.submit({&wanted, 1});
  run(drive, {});
  EXPECT_EQ(drive.log()[0].finished_ns, 50'000 + kWireNs);
  EXPECT_EQ(drive.log()[1].finished_ns, 50'000 + kWireNs + kWireNs / 4);
  // Found after the wire is free again, it takes what it would take alone.
  drive.submit({&chunk, 1});
  const uint64_t start = drive.now_ns();
  drive.advance(kWireNs);
  drive.submit({&wanted, 1});
  run(drive, {});
  EXPECT_EQ(drive.log()[3].finished_ns, start + kWireNs + 50'000 + kWireNs / 4);
}

TEST_F(FakeDriveTest, TheLogTellsWhenReadsEndAndAreReturned) {
  FakeDrive drive = make(kSimpleDrive);
  const auto read = op(0, 0);
  drive.submit({&read, 1});
  EXPECT_EQ(drive.log()[0].returned_ns, 0u);
  drive.advance(1'000'000);
  run(drive, {});
  EXPECT_EQ(drive.log()[0].finished_ns, 50'000 + kWireNs);
  EXPECT_EQ(drive.log()[0].returned_ns, 1'000'000u);
}

TEST_F(FakeDriveTest, IdleTimeIsWhatNoReadCovers) {
  FakeDrive drive = make(kSimpleDrive);
  EXPECT_EQ(drive.idle_ns(), 0u);
  drive.advance(300);
  EXPECT_EQ(drive.idle_ns(), 300u) << "before the first read";
  const auto first = op(0, 0), second = op(0, 1);
  drive.submit({&first, 1});
  drive.advance(20'000);
  drive.submit({&second, 1});  // both are busy, for 50 µs and two wires, or for longer
  const uint64_t end = std::max(300 + 50'000 + 2 * kWireNs, 20'300 + 50'000 + kWireNs);
  EXPECT_EQ(drive.log()[1].finished_ns, end);
  drive.advance(end + 7'000 - drive.now_ns());
  EXPECT_EQ(drive.idle_ns(), 7'300u) << "it ended, though nobody has looked";
  run(drive, {});
  EXPECT_EQ(drive.idle_ns(), 7'300u);
  run(drive, {op(0, 2)});
  EXPECT_EQ(drive.idle_ns(), 7'300u);
}

TEST_F(FakeDriveTest, KindsReachTheirRateAtTheirDepth) {
  const std::map<std::string_view, double> gigabytes_per_s{
      {"slow", 0.5}, {"fast", 3.0}, {"deep", 7.0}, {"shallow", 1.0}};
  for (const FakeDriveKind& kind : fake_drive_kinds()) {
    FakeDrive drive = make(kind.options);
    std::vector<os::ReadOp> ops;
    for (size_t i = 0; i < kBufferCount; ++i) ops.push_back(op(0, i));
    run(drive, ops);
    const auto bytes = static_cast<double>(kBufferCount * kBufferBytes);
    const double rounds = kind.name == "shallow" ? kBufferCount : 1;
    const double latency_ns = rounds * static_cast<double>(kind.options.latency_ns);
    EXPECT_NEAR(bytes / (static_cast<double>(drive.now_ns()) - latency_ns),
                gigabytes_per_s.at(kind.name), 0.02)
        << kind.name;
  }
}

TEST_F(FakeDriveTest, TimePassesByAdvanceAndByLookingInVain) {
  FakeDriveOptions options = kSimpleDrive;
  options.look_ns = 1;
  FakeDrive drive = make(options);
  const auto read = op(0, 0);
  drive.submit({&read, 1});
  os::ReadCompletion done = {};
  drive.advance(50'000 + kWireNs - 1);
  EXPECT_EQ(drive.poll({&done, 1}, false), 0u);  // One nanosecond too early, and it passes.
  EXPECT_EQ(drive.poll({&done, 1}, false), 1u);
}

TEST_F(FakeDriveTest, PlannedFaultsStrikeTheirRead) {
  FakeDrive drive = make({.planned = {{0, FakeFault::short_aligned},
                                      {1, FakeFault::short_unaligned},
                                      {2, FakeFault::end_of_file},
                                      {3, FakeFault::interrupted},
                                      {4, FakeFault::busy},
                                      {5, FakeFault::broken},
                                      {6, FakeFault::delayed}}});
  std::vector<os::ReadOp> ops;
  for (size_t i = 0; i < 8; ++i) ops.push_back(op(i * kSector, i));
  const auto results = run(drive, ops);
  for (const uint64_t tag : {0, 1}) {
    EXPECT_GT(results.at(tag), 0);
    EXPECT_LT(results.at(tag), int64_t{kBufferBytes});
    EXPECT_EQ(results.at(tag) % int64_t{kSector} == 0, tag == 0);
    const auto count = static_cast<size_t>(results.at(tag));
    EXPECT_TRUE(has_data(ops[tag], count));
    EXPECT_FALSE(has_data(ops[tag], count + 8));  // Poison from there on.
  }
  EXPECT_EQ(results.at(2), 0);
  EXPECT_EQ(results.at(3), -EINTR);
  EXPECT_EQ(results.at(4), -EAGAIN);
  EXPECT_EQ(results.at(5), -EIO);
  EXPECT_EQ(results.at(6), int64_t{kBufferBytes});
  EXPECT_EQ(results.at(7), int64_t{kBufferBytes});
  EXPECT_GT(drive.log()[6].finished_ns, drive.log()[7].finished_ns);
}

TEST_F(FakeDriveTest, ShortReadsTakeEveryLength) {
  FakeDrive drive = make({.shares = {.short_aligned = 1}});
  std::set<int64_t> results;
  for (int i = 0; i < 200; ++i) results.insert(run_one(drive, op(0, 0, 4 * kSector)));
  EXPECT_EQ(results, (std::set<int64_t>{kSector, 2 * kSector, 3 * kSector}));
  EXPECT_EQ(run_one(drive, op(0, 0, kSector)), int64_t{kSector});  // Nothing to shorten.
  EXPECT_EQ(run_one(drive, op(100 * kSector, 0)), 17);
}

TEST_F(FakeDriveTest, FaultsHaveTheirShare) {
  FakeDrive drive = make({.shares = {.interrupted = 0.3, .broken = 0.1, .delayed = 0.2}});
  std::map<FakeFault, int> counts;
  for (int i = 0; i < 2000; ++i) run_one(drive, op(0, 0, kSector));
  for (const FakeRead& read : drive.log()) ++counts[read.fault];
  EXPECT_NEAR(counts[FakeFault::interrupted], 600, 100);
  EXPECT_NEAR(counts[FakeFault::broken], 200, 60);
  EXPECT_NEAR(counts[FakeFault::delayed], 400, 80);
  EXPECT_NEAR(counts[FakeFault::none], 800, 110);
}

TEST_F(FakeDriveTest, TheSeedDecides) {
  const auto results_for = [&](uint64_t seed, bool batch) {
    FakeDrive drive = make({.seed = seed,
                            .shares = {.short_unaligned = 0.5, .busy = 0.2, .delayed = 0.2},
                            .reorder = true});
    std::vector<os::ReadOp> ops;
    for (size_t i = 0; i < 50; ++i) ops.push_back(op(i * kSector, i));
    if (batch) {
      run(drive, ops);
    } else {
      for (const auto& one : ops) run_one(drive, one);
    }
    std::vector<int64_t> results;
    for (const FakeRead& read : drive.log()) results.push_back(read.result);
    return results;
  };
  EXPECT_EQ(results_for(5, true), results_for(5, true));
  EXPECT_EQ(results_for(5, true), results_for(5, false));
  EXPECT_NE(results_for(5, true), results_for(6, true));
}

TEST_F(FakeDriveTest, ReorderingLosesNothing) {
  FakeDrive drive = make({.reorder = true});
  std::vector<os::ReadOp> ops;
  for (size_t i = 0; i < kBufferCount; ++i) ops.push_back(op(i * kSector, i));
  drive.submit(ops);
  drive.advance(1'000'000'000);
  std::vector<uint64_t> order;
  std::vector<os::ReadCompletion> done(kBufferCount);
  int polls = 0;
  for (; order.size() < kBufferCount; ++polls) {
    const size_t count = drive.poll(done, false);
    for (size_t i = 0; i < count; ++i) order.push_back(done[i].tag);
  }
  EXPECT_GT(polls, 1);  // Some were held back.
  EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
  EXPECT_EQ(std::set(order.begin(), order.end()).size(), kBufferCount);
}

TEST_F(FakeDriveTest, BuffersHoldPoisonUntilTheReadReturns) {
  FakeDrive drive = make({});
  const auto read = op(0, 0);
  drive.submit({&read, 1});
  drive.advance(1'000'000'000);  // The drive is done, but nobody has asked.
  float value = 0;
  std::memcpy(&value, read.buffer + 4, sizeof(value));
  EXPECT_TRUE(std::isnan(value));
  EXPECT_FALSE(has_data(read, 8));
  os::ReadCompletion done = {};
  ASSERT_EQ(drive.poll({&done, 1}, false), 1u);
  EXPECT_TRUE(has_data(read, kBufferBytes));
  EXPECT_EQ(drive.touched_count(), 0u);
}

TEST_F(FakeDriveTest, CountsTouchedBuffers) {
  FakeDrive drive = make({});
  const auto read = op(0, 0);
  drive.submit({&read, 1});
  read.buffer[kBufferBytes - 1] = std::byte{1};
  os::ReadCompletion done = {};
  drive.poll({&done, 1}, true);
  EXPECT_EQ(drive.touched_count(), 1u);
  // Two reads into overlapping memory: the second spoils the first.
  auto overlapping = op(0, 1);
  overlapping.buffer -= kSector;
  run(drive, {read, overlapping});
  EXPECT_GE(drive.touched_count(), 2u);
}

TEST_F(FakeDriveTest, RefusesAndCountsWhatIsMisaligned) {
  FakeDrive drive = make({.alignment = 512});
  auto offset = op(512, 0), length = op(512, 1), place = op(512, 2), right = op(512, 3);
  offset.offset += 8;
  length.bytes -= 8;
  place.buffer += 256;
  const auto results = run(drive, {offset, length, place, right});
  EXPECT_EQ(results.at(0), -EINVAL);
  EXPECT_EQ(results.at(1), -EINVAL);
  EXPECT_EQ(results.at(2), -EINVAL);
  EXPECT_EQ(results.at(3), int64_t{kBufferBytes});
  EXPECT_EQ(drive.misaligned_count(), 3u);
}

TEST_F(FakeDriveTest, CutFilesEndEarlier) {
  FakeDrive drive = make({});
  drive.cut_file(0, 2 * kSector + 5);
  EXPECT_EQ(run_one(drive, op(0, 0)), int64_t{2 * kSector + 5});
  EXPECT_EQ(run_one(drive, op(3 * kSector, 0)), 0);
}

TEST_F(FakeDriveTest, BrokenRangesFailEveryReadThatTouchesThem) {
  FakeDrive drive = make({});
  drive.break_range({.file = 0, .offset = 2 * kSector + 100, .bytes = 1});
  EXPECT_EQ(run_one(drive, op(0, 0, 2 * kSector)), int64_t{2 * kSector});
  EXPECT_EQ(run_one(drive, op(2 * kSector, 0, kSector)), -EIO);
  EXPECT_EQ(run_one(drive, op(0, 0)), -EIO);
  EXPECT_EQ(run_one(drive, op(3 * kSector, 0)), int64_t{kBufferBytes});
}

TEST_F(FakeDriveTest, DestructionLetsReadsInFlightArrive) {
  const auto read = op(kSector, 0);
  {
    FakeDrive drive = make({});
    drive.submit({&read, 1});
  }
  EXPECT_TRUE(has_data(read, kBufferBytes));
}

using FakeDriveDeathTest = FakeDriveTest;

TEST_F(FakeDriveDeathTest, MoreThanTheDepthIsOurMistake) {
  FakeDrive drive = make({.depth_max = 2});
  const std::vector<os::ReadOp> ops = {op(0, 0), op(0, 1), op(0, 2)};
  EXPECT_DEATH(drive.submit(ops), "check failed");
  os::ReadCompletion done = {};
  EXPECT_DEATH(drive.poll({&done, 1}, true), "check failed");
}

// How one reads through all this: go on from the last whole sector, try again what may pass.
TEST_F(FakeDriveTest, APatientReaderGetsTheWholeFile) {
  FakeDrive drive = make(
      {.seed = 9,
       .shares = {.short_aligned = 0.2, .short_unaligned = 0.2, .interrupted = 0.2, .busy = 0.2},
       .reorder = true});
  const auto& file = files_[0];
  std::vector<std::byte> read(file.size());
  size_t at = 0;
  while (at < file.size()) {
    const auto next = op(round_down(at, kSector), 0);
    const int64_t result = run_one(drive, next);
    if (result == -EINTR || result == -EAGAIN) continue;
    ASSERT_GT(result, 0);
    std::memcpy(read.data() + next.offset, next.buffer, static_cast<size_t>(result));
    at = std::max<size_t>(at, next.offset + static_cast<size_t>(result));
  }
  EXPECT_EQ(read, file);
}

}  // namespace
}  // namespace sluice
