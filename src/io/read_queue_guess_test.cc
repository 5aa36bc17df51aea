// Guesses in the read queue: prefetches that prove right are promoted, others are cancelled, at
// every point of their life and with every fault in their midst.
#include <gtest/gtest.h>

#include "io/read_queue.h"
#include "testing/checked_reading.h"
#include "testing/fake_drive.h"
#include "testing/random_bytes.h"

namespace sluice::io {
namespace {

constexpr uint32_t kChunk = 4 * kSector;

/// Begin and length of a read, in sectors.
using Sectors = std::pair<uint64_t, uint64_t>;

class ReadQueueGuess : public ::testing::Test {
 protected:
  static std::vector<Sectors> reads(const FakeDrive& drive) {
    std::vector<Sectors> result;
    for (const FakeRead& read : drive.log())
      result.emplace_back(read.op.offset / kSector, read.op.bytes / kSector);
    return result;
  }

  void check(const Reading& reading, const FakeDrive& drive) const {
    reading.check();
    EXPECT_EQ(drive.touched_count() + drive.misaligned_count() + drive.in_flight_count(), 0u);
  }

  const Files files_{random_bytes(64 * kSector, 1)};
  /// Two chunks of a prefetch are in service at most.
  const ReadQueueOptions options_{.prefetch_chunk_bytes = kChunk, .prefetch_in_service_max = 2};
};

TEST_F(ReadQueueGuess, APrefetchIsReadInChunksUpToTheCap) {
  FakeDrive drive({}, files_);
  Reading reading(drive, files_, kSector, options_);
  reading.push({0, 10, 14 * kSector}, ReadClass::prefetch);  // fifteen sectors
  reading.queue().pump();
  EXPECT_EQ(reads(drive), (std::vector<Sectors>{{0, 4}, {4, 4}}));
  reading.queue().drain();
  EXPECT_EQ(reads(drive), (std::vector<Sectors>{{0, 4}, {4, 4}, {8, 4}, {12, 3}}));
  check(reading, drive);
}

TEST_F(ReadQueueGuess, TheCapMayBeLoweredAndRaisedAgain) {
  FakeDrive drive({}, files_);
  Reading reading(drive, files_, kSector, options_);
  reading.queue().limit_prefetch(1, 1);
  reading.push({0, 0, 12 * kSector}, ReadClass::prefetch);
  reading.queue().pump();
  EXPECT_EQ(drive.log().size(), 1u);
  reading.queue().limit_prefetch(8, 8);
  reading.queue().pump();
  EXPECT_EQ(drive.log().size(), 2u) << "not beyond what the options say";
  reading.queue().drain();
  check(reading, drive);
}

TEST_F(ReadQueueGuess, WhereTheyWouldDelayItNoneStartsBesideADemandRead) {
  FakeDrive drive({}, files_);
  Reading reading(drive, files_, kSector, options_);
  reading.queue().limit_prefetch(2, 0);
  reading.push({0, 0, 12 * kSector}, ReadClass::prefetch);
  reading.push({0, 20 * kSector, 8 * kSector}, ReadClass::demand);
  reading.queue().pump();
  EXPECT_EQ(reads(drive), (std::vector<Sectors>{{20, 8}}));
  EXPECT_FALSE(reading.queue().wants_prefetch());
  reading.queue().drain();
  EXPECT_EQ(reads(drive), (std::vector<Sectors>{{20, 8}, {0, 4}, {4, 4}, {8, 4}}));
  check(reading, drive);
}

TEST_F(ReadQueueGuess, PromotedBeforeItStartsItIsOneRead) {
  FakeDrive drive({}, files_);
  Reading reading(drive, files_, kSector, options_);
  reading.push({0, 0, 12 * kSector}, ReadClass::prefetch);
  const size_t right = reading.push({0, 20 * kSector, 12 * kSector}, ReadClass::prefetch);
  reading.queue().pump();
  reading.promote(right);
  EXPECT_EQ(drive.log().size(), 2u) << "nothing starts before a pump";
  reading.queue().pump();
  EXPECT_EQ(reads(drive).back(), (Sectors{20, 12}));
  reading.queue().drain();
  EXPECT_EQ(drive.log().size(), 4u);
  check(reading, drive);
}

TEST_F(ReadQueueGuess, PromotedHalfWayTheRestIsOneRead) {
  FakeDrive drive({}, files_);
  Reading reading(drive, files_, kSector, options_);
  const size_t right = reading.push({0, 0, 20 * kSector}, ReadClass::prefetch);
  reading.queue().pump();
  reading.promote(right);
  EXPECT_EQ(reading.in_service(ReadClass::demand), 2u) << "what is on its way counts as demand";
  reading.queue().drain();
  EXPECT_EQ(reads(drive), (std::vector<Sectors>{{0, 4}, {4, 4}, {8, 12}}));
  const IoStats& stats = reading.stats();
  EXPECT_EQ(stats.of(ReadClass::prefetch), (ClassStats{.started_count = 1, .promoted_count = 1}));
  EXPECT_EQ(stats.of(ReadClass::demand),
            (ClassStats{
                .finished_count = 1, .wanted_bytes = 20 * kSector, .window_bytes = 20 * kSector}));
  EXPECT_EQ(stats.read_bytes, 20 * kSector) << "nothing is read twice";
  check(reading, drive);
}

TEST_F(ReadQueueGuess, PromotedOnItsWayItReadsNothingMore) {
  FakeDrive drive({}, files_);
  Reading reading(drive, files_, kSector, options_);
  const size_t right = reading.push({0, 0, 8 * kSector}, ReadClass::prefetch);
  reading.queue().pump();
  reading.promote(right);
  reading.queue().drain();
  EXPECT_EQ(drive.log().size(), 2u);
  EXPECT_EQ(reading.stats().promoted_count(), 1u);
  check(reading, drive);
}

TEST_F(ReadQueueGuess, PromotedOnesJoinTheEndOfTheDemandLine) {
  FakeDrive drive({.depth_max = 1}, files_);
  Reading reading(drive, files_, kSector, options_);
  const size_t right = reading.push({0, 30 * kSector, kSector}, ReadClass::prefetch);
  reading.push({0, 0, kSector});
  reading.push({0, 1 * kSector, kSector});
  reading.promote(right);
  reading.push({0, 2 * kSector, kSector});
  reading.queue().drain();
  EXPECT_EQ(reads(drive), (std::vector<Sectors>{{0, 1}, {1, 1}, {30, 1}, {2, 1}}));
  check(reading, drive);
}

TEST_F(ReadQueueGuess, ALoadReadMayBePromotedToo) {
  FakeDrive drive({}, files_);
  Reading reading(drive, files_, kSector, {.load_chunk_bytes = kChunk});
  reading.push({0, 0, 4 * kSector});  // keeps load reads from starting
  const size_t right = reading.push({0, 8 * kSector, 12 * kSector}, ReadClass::load);
  reading.queue().pump();
  reading.promote(right);
  reading.queue().drain();
  EXPECT_EQ(reads(drive), (std::vector<Sectors>{{0, 4}, {8, 12}}));
  EXPECT_EQ(reading.stats().of(ReadClass::load).promoted_count, 1u);
  check(reading, drive);
}

TEST_F(ReadQueueGuess, CancelledBeforeItStartsItEndsWithinTheCall) {
  FakeDrive drive({}, files_);
  Reading reading(drive, files_, kSector, options_);
  const size_t wrong = reading.push({0, 0, 12 * kSector}, ReadClass::prefetch);
  reading.cancel(wrong);
  ASSERT_EQ(reading.wish(wrong).completed_count, 1);
  EXPECT_EQ(reading.wish(wrong).error->kind, ErrorKind::interrupted);
  EXPECT_EQ(reading.queue().request_count(), 0u);
  reading.queue().pump();
  EXPECT_TRUE(drive.log().empty());
  EXPECT_EQ(reading.stats().cancelled_bytes, 0u);
  check(reading, drive);
}

TEST_F(ReadQueueGuess, CancelledHalfWayItEndsWhenAllHasLanded) {
  FakeDrive drive({}, files_);
  Reading reading(drive, files_, kSector, options_);
  const size_t wrong = reading.push({0, 0, 30 * kSector}, ReadClass::prefetch);
  reading.queue().pump();
  reading.cancel(wrong);
  EXPECT_EQ(reading.wish(wrong).completed_count, 0) << "its buffer is still written to";
  EXPECT_EQ(reading.in_service(ReadClass::prefetch), 2u) << "and the drive is still busy with it";
  reading.queue().wait();
  EXPECT_EQ(reading.wish(wrong).completed_count, 1);
  EXPECT_EQ(drive.log().size(), 2u);
  EXPECT_EQ(reading.stats().of(ReadClass::prefetch),
            (ClassStats{.started_count = 1, .cancelled_count = 1}));
  EXPECT_EQ(reading.stats().cancelled_bytes, 8 * kSector);
  check(reading, drive);
}

TEST_F(ReadQueueGuess, CancelledOnesMakeRoomForOthers) {
  FakeDrive drive({}, files_);
  Reading reading(drive, files_, kSector, options_);
  const size_t wrong = reading.push({0, 0, 30 * kSector}, ReadClass::prefetch);
  reading.push({0, 40 * kSector, 8 * kSector}, ReadClass::prefetch);
  reading.queue().pump();
  reading.cancel(wrong);
  reading.queue().drain();
  EXPECT_EQ(reads(drive), (std::vector<Sectors>{{0, 4}, {4, 4}, {40, 4}, {44, 4}}));
  check(reading, drive);
}

TEST_F(ReadQueueGuess, WhatFailedAndIsNotWantedEndsAsInterrupted) {
  FakeDrive drive({.planned = {{0, FakeFault::broken}, {1, FakeFault::delayed}}}, files_);
  Reading reading(drive, files_, kSector, options_);
  const size_t wrong = reading.push({0, 0, 8 * kSector}, ReadClass::prefetch);
  reading.queue().pump();
  while (!reading.wish(wrong).broken) reading.queue().pump();
  reading.cancel(wrong);
  reading.queue().drain();
  EXPECT_EQ(reading.wish(wrong).error->kind, ErrorKind::interrupted);
  check(reading, drive);
}

TEST_F(ReadQueueGuess, NamesLastAsLongAsTheirRequest) {
  FakeDrive drive({}, files_);
  Reading reading(drive, files_, kSector, {.request_count_max = 1});
  ReadQueue& queue = reading.queue();
  EXPECT_FALSE(queue.promote({}));
  EXPECT_FALSE(queue.cancel({}));
  EXPECT_FALSE(queue.cancel({.index = 7, .generation = 1})) << "no such place";
  const size_t first = reading.push({0, 0, kSector}, ReadClass::prefetch);
  queue.drain();
  const size_t second = reading.push({0, 0, kSector}, ReadClass::prefetch);  // in the same place
  reading.promote(first);
  reading.cancel(first);
  EXPECT_EQ(reading.wish(second).completed_count, 0);
  EXPECT_TRUE(queue.promote(reading.wish(second).handle));
  EXPECT_FALSE(queue.promote(reading.wish(second).handle)) << "it is demand already";
  queue.drain();
  EXPECT_FALSE(queue.cancel(reading.wish(second).handle));
}

TEST_F(ReadQueueGuess, WhatWasCancelledIsNotPromoted) {
  FakeDrive drive({}, files_);
  Reading reading(drive, files_, kSector, options_);
  const size_t wrong = reading.push({0, 0, 30 * kSector}, ReadClass::prefetch);
  reading.queue().pump();
  reading.cancel(wrong);
  EXPECT_FALSE(reading.queue().promote(reading.wish(wrong).handle));
  reading.cancel(wrong);  // once more is as once
  reading.queue().drain();
  EXPECT_EQ(drive.log().size(), 2u);
  check(reading, drive);
}

TEST_F(ReadQueueGuess, AFurtherGuessIsWantedWhenItWouldStartAtOnce) {
  FakeDrive drive({}, files_);
  Reading reading(drive, files_, kSector,
                  {.request_count_max = 6,
                   .prefetch_chunk_bytes = kChunk,
                   .prefetch_in_service_max = 2,
                   .prefetch_in_service_beside_demand_max = 1});
  ReadQueue& queue = reading.queue();
  EXPECT_TRUE(queue.wants_prefetch());
  reading.push({0, 0, kSector}, ReadClass::prefetch);
  EXPECT_FALSE(queue.wants_prefetch()) << "one waits";
  queue.pump();
  EXPECT_TRUE(queue.wants_prefetch()) << "one is in service";
  reading.push({0, 0, kSector}, ReadClass::demand);
  EXPECT_FALSE(queue.wants_prefetch()) << "demand waits";
  queue.pump();
  EXPECT_FALSE(queue.wants_prefetch()) << "one is enough beside demand";
  queue.drain();
  reading.push({0, 0, 2 * kChunk}, ReadClass::prefetch);
  queue.pump();
  EXPECT_FALSE(queue.wants_prefetch()) << "two are enough";
  queue.drain();
  for (int i = 0; i < 6; ++i) reading.push({0, 0, kSector}, ReadClass::load);
  EXPECT_FALSE(queue.wants_prefetch()) << "there is no room";
  reading.cancel(reading.wish_count() - 1);
  EXPECT_TRUE(queue.wants_prefetch()) << "load reads are behind it";
  queue.drain();
  check(reading, drive);
}

TEST_F(ReadQueueGuess, SinksMayHandInPromoteAndCancel) {
  FakeDrive drive({}, files_);
  Reading reading(drive, files_, kSector, options_);
  const size_t demand = reading.push({0, 0, kSector});
  const size_t wrong = reading.push({0, 4 * kSector, 16 * kSector}, ReadClass::prefetch);
  const size_t right = reading.push({0, 30 * kSector, 16 * kSector}, ReadClass::prefetch);
  reading.on_end = [&](size_t index) {
    if (index != demand) return;
    reading.cancel(wrong);
    reading.promote(right);
    reading.push({0, 60 * kSector, kSector});
  };
  reading.queue().drain();
  EXPECT_TRUE(reading.wish(wrong).error.has_value());
  EXPECT_EQ(reading.failed_count(), 1u);
  EXPECT_EQ(reads(drive).back(), (Sectors{60, 1}));
  EXPECT_EQ(reading.wish_count(), 4u);
  check(reading, drive);
}

enum class Fate { left_alone, promoted, cancelled };

/// One fault at each of the first reads of a request of five chunks, whose fate comes after each
/// number of reads.
TEST_F(ReadQueueGuess, EveryFaultAtEveryPointOfEveryFate) {
  for (const Fate fate : {Fate::left_alone, Fate::promoted, Fate::cancelled})
    for (const FakeFault fault :
         {FakeFault::short_aligned, FakeFault::short_unaligned, FakeFault::end_of_file,
          FakeFault::interrupted, FakeFault::busy, FakeFault::broken, FakeFault::delayed})
      for (uint64_t faulty_read = 0; faulty_read < 5; ++faulty_read)
        for (size_t reads_before = 0; reads_before <= 5; ++reads_before) {
          SCOPED_TRACE(::testing::Message()
                       << static_cast<int>(fate) << " fault " << static_cast<int>(fault) << " at "
                       << faulty_read << ", fate after " << reads_before);
          FakeDrive drive({.planned = {{faulty_read, fault}}}, files_);
          Reading reading(drive, files_, kSector, options_);
          const size_t wish = reading.push({0, 100, 19 * kSector}, ReadClass::prefetch);
          while (drive.log().size() < reads_before && reading.wish(wish).completed_count == 0)
            reading.queue().pump();
          const bool ended = reading.wish(wish).completed_count > 0;
          if (fate == Fate::promoted) reading.promote(wish);
          if (fate == Fate::cancelled) reading.cancel(wish);
          reading.check_state();
          reading.queue().drain();
          check(reading, drive);
          const bool repaired = fault != FakeFault::end_of_file && fault != FakeFault::broken;
          const bool struck = drive.log().size() > faulty_read;
          const bool cancelled = fate == Fate::cancelled && !ended;
          ASSERT_EQ(reading.wish(wish).error.has_value(), cancelled || (struck && !repaired));
          if (!reading.wish(wish).error) {
            ASSERT_GE(reading.stats().read_bytes, 19 * kSector + 100);
          }
        }
}

}  // namespace
}  // namespace sluice::io
