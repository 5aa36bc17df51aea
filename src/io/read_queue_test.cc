#include "io/read_queue.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "os/arena.h"
#include "testing/checked_reading.h"
#include "testing/fake_drive.h"
#include "testing/random_bytes.h"

namespace sluice::io {
namespace {

class ReadQueueTest : public ::testing::Test {
 protected:
  /// Ends each test: the drive saw nothing but aligned reads into buffers that nobody touched.
  void check(const Reading& reading, const FakeDrive& drive) {
    reading.check();
    EXPECT_EQ(drive.misaligned_count(), 0u);
    EXPECT_EQ(drive.touched_count(), 0u);
    EXPECT_EQ(drive.in_flight_count(), 0u);
  }

  const Files files_{random_bytes(64 * kSector + 1234, 1)};
};

TEST_F(ReadQueueTest, ADemandReadIsOneReadOfTheWindow) {
  FakeDrive drive({}, files_);
  Reading reading(drive, files_, kSector);
  reading.push({0, 5000, 50'000});
  EXPECT_TRUE(drive.log().empty()) << "nothing starts before a pump";
  reading.queue().drain();
  ASSERT_EQ(drive.log().size(), 1u);
  EXPECT_EQ(drive.log()[0].op.offset, 4096u);
  EXPECT_EQ(drive.log()[0].op.bytes, 13 * kSector);  // up to 55000 < 14 · 4096
  check(reading, drive);
}

TEST_F(ReadQueueTest, LoadReadsAreCutIntoChunks) {
  FakeDrive drive({}, files_);
  Reading reading(drive, files_, kSector, {.load_chunk_bytes = 4 * kSector});
  reading.push({0, 100, 18 * kSector}, ReadClass::load);
  reading.queue().drain();
  std::vector<std::pair<uint64_t, uint32_t>> reads;
  for (const FakeRead& read : drive.log()) reads.emplace_back(read.op.offset, read.op.bytes);
  const std::vector<std::pair<uint64_t, uint32_t>> expected{
      {0, 16384}, {16384, 16384}, {32768, 16384}, {49152, 16384}, {65536, 12288}};
  EXPECT_EQ(reads, expected);
  check(reading, drive);
}

TEST_F(ReadQueueTest, DemandBeyondTheKernelsLimitIsCutToo) {
  FakeDrive drive({}, files_);
  Reading reading(drive, files_, kSector, {.demand_read_bytes_max = 16 * kSector});
  reading.push({0, 7, 40 * kSector});
  reading.queue().drain();
  EXPECT_EQ(drive.log().size(), 3u);
  check(reading, drive);
}

TEST_F(ReadQueueTest, DemandOvertakesPrefetchOvertakesLoad) {
  FakeDrive drive({.depth_max = 4}, files_);
  Reading reading(drive, files_, kSector, {.load_chunk_bytes = kSector});
  reading.push({0, 0, 5 * kSector}, ReadClass::load);
  reading.queue().pump();
  ASSERT_EQ(drive.log().size(), 2u) << "half of the places are for demand alone";
  reading.push({0, 40 * kSector, kSector}, ReadClass::prefetch);
  reading.push({0, 50 * kSector, kSector}, ReadClass::demand);
  reading.push({0, 51 * kSector, kSector}, ReadClass::demand);
  reading.queue().drain();
  std::vector<uint64_t> sectors;
  for (const FakeRead& read : drive.log()) sectors.push_back(read.op.offset / kSector);
  EXPECT_EQ(sectors, (std::vector<uint64_t>{0, 1, 50, 51, 40, 2, 3, 4}));
  check(reading, drive);
}

TEST_F(ReadQueueTest, AShortReadGoesOnFromTheLastWholeSector) {
  for (const FakeFault fault : {FakeFault::short_aligned, FakeFault::short_unaligned}) {
    for (uint64_t seed = 1; seed <= 50; ++seed) {
      FakeDrive drive({.seed = seed, .planned = {{0, fault}}}, files_);
      Reading reading(drive, files_, kSector);
      reading.push({0, 9 * kSector + 17, 20 * kSector});
      reading.queue().drain();
      check(reading, drive);
      const auto& log = drive.log();
      const auto got = static_cast<uint64_t>(log[0].result);
      if (got >= 20 * kSector + 17) {  // only padding was missing
        EXPECT_EQ(log.size(), 1u);
        continue;
      }
      ASSERT_EQ(log.size(), 2u);
      EXPECT_EQ(log[1].op.offset, log[0].op.offset + got / kSector * kSector);
      EXPECT_EQ(log[1].op.offset + log[1].op.bytes, log[0].op.offset + log[0].op.bytes);
      EXPECT_EQ(reading.queue().stats().resumed_count, 1u);
    }
  }
}

TEST_F(ReadQueueTest, InterruptedAndBusyAreTriedAgain) {
  FakeDrive drive({.planned = {{0, FakeFault::interrupted}, {1, FakeFault::busy}}}, files_);
  Reading reading(drive, files_, kSector);
  reading.push({0, 0, kSector});
  reading.queue().drain();
  EXPECT_EQ(drive.log().size(), 3u);
  EXPECT_EQ(reading.queue().stats().retried_count, 2u);
  EXPECT_EQ(reading.failed_count(), 0u);
  check(reading, drive);
}

TEST_F(ReadQueueTest, WhatNeverProgressesIsGivenUp) {
  for (const FakeFaultShares& shares :
       {FakeFaultShares{.interrupted = 1}, FakeFaultShares{.busy = 1}}) {
    FakeDrive drive({.shares = shares}, files_);
    Reading reading(drive, files_, kSector, {.stuck_read_count_max = 5});
    reading.push({0, 0, kSector});
    reading.queue().drain();
    EXPECT_EQ(drive.log().size(), 6u);
    ASSERT_TRUE(reading.wish(0).error.has_value());
    EXPECT_NE(reading.wish(0).error->message.find("makes no progress"), std::string::npos);
    check(reading, drive);
  }
}

TEST_F(ReadQueueTest, ProgressResetsTheCountOfTriesInVain) {
  FakeDriveOptions options;
  for (uint64_t i = 0; i < 12; ++i)
    options.planned.emplace_back(i, i % 4 == 3 ? FakeFault::short_aligned : FakeFault::busy);
  FakeDrive drive(options, files_);
  Reading reading(drive, files_, kSector, {.stuck_read_count_max = 3});
  reading.push({0, 0, 64 * kSector});
  reading.queue().drain();
  EXPECT_EQ(reading.failed_count(), 0u) << reading.wish(0).error->message;
  check(reading, drive);
}

TEST_F(ReadQueueTest, ABrokenReadFailsItsRequestAlone) {
  FakeDrive drive({.planned = {{1, FakeFault::broken}}}, files_);
  Reading reading(drive, files_, kSector);
  for (uint64_t i = 0; i < 4; ++i) reading.push({0, i * 9000 + 5000, 6000});
  reading.queue().drain();
  EXPECT_EQ(reading.failed_count(), 1u);
  const Error& error = reading.wish(1).error.value();
  EXPECT_EQ(error.kind, ErrorKind::io);
  EXPECT_EQ(error.message, "model-0.gguf: reading 8192 bytes at 12288: Input/output error");
  check(reading, drive);
}

TEST_F(ReadQueueTest, AChunkedRequestFailsOnceWhenNoneOfItsReadsIsLeft) {
  FakeDrive drive({.planned = {{1, FakeFault::broken}, {2, FakeFault::broken}}}, files_);
  Reading reading(drive, files_, kSector, {.load_chunk_bytes = kSector});
  reading.push({0, 0, 10 * kSector}, ReadClass::load);
  while (reading.queue().request_count() > 0) {
    reading.queue().wait();
    if (reading.wish(0).completed_count > 0) {
      EXPECT_EQ(drive.in_flight_count(), 0u) << "its buffer is free";
    }
  }
  EXPECT_EQ(reading.failed_count(), 1u);
  check(reading, drive);
}

TEST_F(ReadQueueTest, AFailedRequestStartsNoMoreReads) {
  FakeDrive drive({.depth_max = 4, .planned = {{0, FakeFault::broken}}}, files_);
  Reading reading(drive, files_, kSector, {.load_chunk_bytes = kSector});
  reading.push({0, 0, 40 * kSector}, ReadClass::load);
  reading.push({0, 50 * kSector, kSector}, ReadClass::load);
  reading.queue().drain();
  EXPECT_EQ(drive.log().size(), 3u) << "two chunks were on their way, then the next request";
  EXPECT_EQ(reading.failed_count(), 1u);
  check(reading, drive);
}

TEST_F(ReadQueueTest, TheEndOfTheFileInPaddingIsNoError) {
  const uint64_t file_bytes = files_[0].size();
  FakeDrive drive({}, files_);
  Reading reading(drive, files_, kSector);
  reading.push({0, file_bytes - 1, 1});
  reading.push({0, file_bytes - 5000, 5000});
  reading.push({0, file_bytes - 5000, 4000});
  reading.queue().drain();
  EXPECT_EQ(reading.failed_count(), 0u);
  EXPECT_EQ(drive.log().size(), 3u);
  check(reading, drive);
}

TEST_F(ReadQueueTest, AFileCutInsideWantedBytesIsAnError) {
  const uint64_t wanted_end = 10 * kSector + 100;
  for (const uint64_t end : {uint64_t{0}, 2 * kSector, 8 * kSector, 8 * kSector + 1, 10 * kSector,
                             wanted_end - 1, wanted_end, 11 * kSector}) {
    FakeDrive drive({}, files_);
    Reading reading(drive, files_, kSector, {.load_chunk_bytes = 2 * kSector});
    reading.push({0, 4 * kSector + 100, 6 * kSector});
    reading.push({0, 4 * kSector + 100, 6 * kSector}, ReadClass::load);
    drive.cut_file(0, end);
    reading.queue().drain();
    check(reading, drive);
    EXPECT_EQ(reading.failed_count(), end < wanted_end ? 2u : 0u) << end;
    for (const size_t index : {0, 1}) {
      const auto& error = reading.wish(index).error;
      if (!error) continue;
      EXPECT_EQ(error->kind, ErrorKind::io);
      EXPECT_TRUE(error->message.starts_with("model-0.gguf: ")) << error->message;
      EXPECT_NE(error->message.find("cut short while in use"), std::string::npos)
          << end << ": " << error->message;
    }
  }
}

TEST_F(ReadQueueTest, RoomForRequestsIsLimited) {
  FakeDrive drive({}, files_);
  Reading reading(drive, files_, kSector, {.request_count_max = 3});
  EXPECT_TRUE(reading.queue().has_room(3));
  EXPECT_FALSE(reading.queue().has_room(4));
  for (uint64_t i = 0; i < 3; ++i) reading.push({0, i, 1});
  EXPECT_FALSE(reading.queue().has_room());
  reading.queue().drain();
  EXPECT_TRUE(reading.queue().has_room(3));
  check(reading, drive);
}

using ReadQueueDeathTest = ReadQueueTest;

TEST_F(ReadQueueDeathTest, OurOwnMistakesStopTheProcess) {
  FakeDrive drive({}, files_);
  Reading reading(drive, files_, kSector, {.request_count_max = 1});
  EXPECT_DEATH(reading.queue().wait(), "check failed") << "nothing to wait for";
  EXPECT_DEATH(reading.push({0, 0, 0}), "check failed") << "no bytes wanted";
  reading.push({0, 0, 1});
  EXPECT_DEATH(reading.push({0, 0, 1}), "check failed") << "no room";
  reading.queue().drain();
}

TEST_F(ReadQueueTest, WhatHasNotStartedMayBeGivenUp) {
  FakeDrive drive({.depth_max = 4}, files_);
  Reading reading(drive, files_, kSector, {.load_chunk_bytes = kSector});
  reading.push({0, 0, 8 * kSector}, ReadClass::load);  // two of its reads start
  for (uint64_t i = 1; i < 6; ++i) reading.push({0, i * kSector, kSector}, ReadClass::load);
  reading.queue().pump();
  reading.give_up_waiting();
  reading.queue().drain();
  EXPECT_EQ(reading.failed_count(), 6u);
  EXPECT_EQ(reading.wish(5).error->kind, ErrorKind::interrupted);
  EXPECT_LE(drive.log().size(), 4u) << "nothing was started for them";
  check(reading, drive);
}

TEST_F(ReadQueueTest, WaitingEndsWithTheFirstRequest) {
  FakeDrive drive({.latency_ns = 1000, .planned = {{0, FakeFault::delayed}}}, files_);
  Reading reading(drive, files_, kSector);
  reading.push({0, 0, kSector});
  reading.push({0, 9 * kSector, kSector});
  reading.queue().wait();
  EXPECT_EQ(reading.wish(0).completed_count, 0);
  EXPECT_EQ(reading.wish(1).completed_count, 1);
  reading.queue().drain();
  check(reading, drive);
}

TEST_F(ReadQueueTest, EveryResidueOfTheOffset) {
  FakeDrive drive({}, files_);
  for (const uint64_t bytes : {uint64_t{1}, uint64_t{32}, kSector - 1, kSector, kSector + 33}) {
    Reading reading(drive, files_, kSector, {}, 80 << 20);
    for (uint64_t residue = 0; residue < kSector; ++residue) {
      reading.push({0, 3 * kSector + residue, bytes});
      if (!reading.queue().has_room()) reading.queue().drain();
    }
    reading.queue().drain();
    EXPECT_EQ(reading.failed_count(), 0u);
    check(reading, drive);
  }
}

TEST_F(ReadQueueTest, DestructionWaitsForReadsInFlightAndCallsNobody) {
  FakeDrive drive({.depth_max = 4}, files_);
  Reading reading(drive, files_, kSector);
  for (uint64_t i = 0; i < 10; ++i) reading.push({0, i * kSector + 1, kSector});
  reading.queue().pump();
  EXPECT_EQ(drive.in_flight_count(), 4u);
  reading.destroy_queue();
  EXPECT_EQ(drive.in_flight_count(), 0u);
  EXPECT_EQ(drive.log().size(), 4u) << "what had not started is dropped";
  for (size_t i = 0; i < reading.wish_count(); ++i) EXPECT_EQ(reading.wish(i).completed_count, 0);
}

/// Counts what would be system calls.
class CountingReader final : public os::AsyncReader {
 public:
  explicit CountingReader(os::AsyncReader& reader) : reader_(reader) {}
  std::string_view name() const override { return "counting"; }
  size_t depth_max() const override { return reader_.depth_max(); }
  void submit(std::span<const os::ReadOp> ops) override {
    ++call_count;
    reader_.submit(ops);
  }
  size_t poll(std::span<os::ReadCompletion> done, bool wait) override {
    ++call_count;
    return reader_.poll(done, wait);
  }
  uint64_t now_ns() const override { return reader_.now_ns(); }

  int call_count = 0;

 private:
  os::AsyncReader& reader_;
};

TEST_F(ReadQueueTest, PumpingWithNothingToDoIsFree) {
  FakeDrive drive({}, files_);
  CountingReader reader(drive);
  Reading reading(reader, files_, kSector);
  reading.queue().pump();
  EXPECT_EQ(reader.call_count, 0);
  for (uint64_t i = 0; i < 30; ++i) reading.push({0, i * kSector, kSector});
  reading.queue().pump();
  EXPECT_EQ(reader.call_count, 2) << "thirty reads are handed over at once, one look for results";
  reading.queue().drain();
  const int before = reader.call_count;
  reading.queue().pump();
  EXPECT_EQ(reader.call_count, before);
}

}  // namespace
}  // namespace sluice::io
