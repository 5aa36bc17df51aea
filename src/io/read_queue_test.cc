#include "io/read_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>

#include "base/random.h"
#include "io/window.h"
#include "os/arena.h"
#include "testing/fake_drive.h"
#include "testing/random_bytes.h"
#include "testing/temp_folder.h"

namespace sluice::io {
namespace {

constexpr uint64_t kSector = 4096;
constexpr std::byte kGuard{0x5a};

using Files = std::vector<std::vector<std::byte>>;

/// One request of a test and what became of it.
struct Wish {
  FileExtent wanted;
  ReadClass read_class;
  std::byte* region;  ///< guard, window, guard
  uint64_t region_bytes;
  int completed_count = 0;
  std::optional<Error> error;
};

/// A queue over a reader, with a guarded buffer for each request.
class Reading {
 public:
  Reading(os::AsyncReader& reader, const Files& files, uint32_t alignment,
          ReadQueueOptions options = {}, uint64_t memory_bytes = 4 << 20)
      : files_(files),
        alignment_(alignment),
        memory_(*os::Arena::allocate(memory_bytes, "a test")),
        queue_(std::make_unique<ReadQueue>(reader, facts(files.size(), alignment), options)) {}

  ReadQueue& queue() { return *queue_; }
  void destroy_queue() { queue_.reset(); }
  const Wish& wish(size_t index) const { return wishes_[index]; }
  size_t wish_count() const { return wishes_.size(); }

  size_t push(FileExtent wanted, ReadClass read_class = ReadClass::demand) {
    const uint64_t room = window_of(wanted, alignment_).bytes + 2 * alignment_;
    CHECK(used_ + room <= memory_.bytes());
    wishes_.push_back({wanted, read_class, memory_.begin() + used_, room, 0, {}});
    std::memset(wishes_.back().region, static_cast<int>(kGuard), room);
    used_ += room;
    queue_->push({.wanted = wanted,
                  .buffer = wishes_.back().region + alignment_,
                  .read_class = read_class,
                  .tag = wishes_.size() - 1,
                  .sink = {on_complete, this}});
    return wishes_.size() - 1;
  }

  /// Every request has ended once; the good ones hold the file's bytes; nothing lies outside of any
  /// window; the sums of io_stats.h hold.
  void check() const {
    ClassStats sums[kReadClassCount] = {};
    for (const Wish& wish : wishes_) {
      ASSERT_EQ(wish.completed_count, 1);
      check_bytes(wish);
      const AlignedWindow window = window_of(wish.wanted, alignment_);
      ClassStats& sum = sums[static_cast<size_t>(wish.read_class)];
      ++sum.started_count;
      ++(wish.error ? sum.failed_count : sum.finished_count);
      sum.wanted_bytes += wish.error ? 0 : wish.wanted.bytes;
      sum.window_bytes += wish.error ? 0 : window.bytes;
    }
    for (size_t i = 0; i < kReadClassCount; ++i) {
      const ClassStats& stats = queue_->stats().by_class[i];
      EXPECT_EQ(stats.started_count, sums[i].started_count);
      EXPECT_EQ(stats.finished_count, sums[i].finished_count);
      EXPECT_EQ(stats.failed_count, sums[i].failed_count);
      EXPECT_EQ(stats.wanted_bytes, sums[i].wanted_bytes);
      EXPECT_EQ(stats.window_bytes, sums[i].window_bytes);
    }
    EXPECT_EQ(queue_->request_count(), 0u);
  }

  size_t failed_count() const {
    return static_cast<size_t>(
        std::ranges::count_if(wishes_, [](const Wish& wish) { return wish.error.has_value(); }));
  }

 private:
  static std::vector<FileFacts> facts(size_t count, uint32_t alignment) {
    std::vector<FileFacts> result;
    for (size_t i = 0; i < count; ++i)
      result.push_back({"model-" + std::to_string(i) + ".gguf", alignment});
    return result;
  }

  static void on_complete(void* context, uint64_t tag, const Error* error) {
    Wish& wish = static_cast<Reading*>(context)->wishes_.at(tag);
    ++wish.completed_count;
    if (error != nullptr) wish.error = *error;
  }

  /// Whether nobody has written there: all bytes are as the first, and that is the guard.
  static bool is_guard(const std::byte* begin, const std::byte* end) {
    return *begin == kGuard &&
           std::memcmp(begin, begin + 1, static_cast<size_t>(end - begin) - 1) == 0;
  }

  void check_bytes(const Wish& wish) const {
    const AlignedWindow window = window_of(wish.wanted, alignment_);
    const std::byte* const begin = wish.region + alignment_;
    if (!wish.error) {
      const auto& file = files_[wish.wanted.file];
      ASSERT_EQ(
          std::memcmp(begin + window.head, file.data() + wish.wanted.offset, wish.wanted.bytes), 0)
          << wish.wanted.bytes << " bytes at " << wish.wanted.offset;
    }
    ASSERT_TRUE(is_guard(wish.region, begin));
    ASSERT_TRUE(is_guard(begin + window.bytes, wish.region + wish.region_bytes));
  }

  const Files& files_;
  const uint64_t alignment_;
  os::Arena memory_;
  uint64_t used_ = 0;
  std::deque<Wish> wishes_;
  std::unique_ptr<ReadQueue> queue_;
};

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
  FakeDrive drive({.depth_max = 2}, files_);
  Reading reading(drive, files_, kSector, {.load_chunk_bytes = kSector});
  reading.push({0, 0, 5 * kSector}, ReadClass::load);
  reading.queue().pump();
  ASSERT_EQ(drive.log().size(), 2u) << "two chunks fill the drive";
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
    options.planned[i] = i % 4 == 3 ? FakeFault::short_aligned : FakeFault::busy;
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
  FakeDrive drive({.depth_max = 2, .planned = {{0, FakeFault::broken}}}, files_);
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

/// A schedule drawn from a seed: requests of all classes over two files, handed in, pumped and
/// waited for in random order, on a drive with the given faults.
void run_random_schedule(uint64_t seed, const FakeFaultShares& shares) {
  Random random(seed);
  const uint32_t alignment = random.below(2) == 0 ? 512 : 4096;
  const Files files{random_bytes(40 * kSector + random.below(9000), seed),
                    random_bytes(3 * kSector + random.below(9000), ~seed)};
  FakeDrive drive({.seed = seed,
                   .depth_max = 1 + random.below(8),
                   .alignment = alignment,
                   .shares = shares,
                   .reorder = random.below(4) != 0},
                  files);
  Reading reading(drive, files, alignment,
                  {.request_count_max = 1 + random.below(12),
                   .load_chunk_bytes = static_cast<uint32_t>(alignment * (1 + random.below(4)))});
  ReadQueue& queue = reading.queue();
  for (int step = 0; step < 40; ++step) {
    const uint64_t what = random.below(8);
    if (what < 5 && queue.has_room()) {
      const auto file = static_cast<uint32_t>(random.below(2));
      const uint64_t offset = random.below(files[file].size());
      const uint64_t bytes_max = std::min<uint64_t>(files[file].size() - offset, 6 * kSector);
      reading.push({file, offset, 1 + random.below(bytes_max)},
                   static_cast<ReadClass>(random.below(kReadClassCount)));
    } else if (what < 7 || queue.request_count() == 0) {
      queue.pump();
    } else {
      queue.wait();
    }
  }
  queue.drain();
  reading.check();
  EXPECT_EQ(drive.misaligned_count() + drive.touched_count(), 0u);
  if (shares.broken + shares.end_of_file == 0) {
    EXPECT_EQ(reading.failed_count(), 0u);
  }
}
TEST(ReadQueueRandom, WhatCanBeRepairedIsRepaired) {
  for (uint64_t seed = 1; seed <= 2000 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    run_random_schedule(seed, {.short_aligned = 0.15,
                               .short_unaligned = 0.15,
                               .interrupted = 0.1,
                               .busy = 0.1,
                               .delayed = 0.2});
  }
}
TEST(ReadQueueRandom, WhatCannotBeRepairedFailsCleanly) {
  for (uint64_t seed = 1; seed <= 1000 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    run_random_schedule(seed, {.short_aligned = 0.1,
                               .short_unaligned = 0.1,
                               .end_of_file = 0.1,
                               .interrupted = 0.1,
                               .broken = 0.1,
                               .delayed = 0.1});
  }
}

/// Real files, read by each kind of reader.
class ReadQueueOnFiles : public ::testing::TestWithParam<os::ReaderKind> {};

TEST_P(ReadQueueOnFiles, EveryResidueOfTheOffset) {
  const Files files{random_bytes(20 * kSector + 77, 5)};
  const TempFolder folder;
  const std::string path = folder.write("weights", std::span<const std::byte>(files[0]));
  const auto file = os::File::open(path, os::DirectMode::auto_detect);
  ASSERT_TRUE(file.ok()) << file.error().message;
  const os::File* const pointer = &*file;
  auto reader = os::make_async_reader({&pointer, 1}, {.kind = GetParam()}, nullptr);
  if (!reader) GTEST_SKIP() << reader.error().message;
  Reading reading(**reader, files, file->alignment(), {.load_chunk_bytes = 2 * kSector}, 100 << 20);
  for (uint64_t residue = 0; residue < kSector; ++residue) {
    const uint64_t offset = (residue % 7) * kSector + residue;
    if (!reading.queue().has_room()) reading.queue().wait();
    reading.push({0, offset, 1 + residue * 3}, static_cast<ReadClass>(residue % kReadClassCount));
    reading.queue().pump();
  }
  reading.queue().drain();
  EXPECT_EQ(reading.failed_count(), 0u);
  reading.check();
}

INSTANTIATE_TEST_SUITE_P(Readers, ReadQueueOnFiles,
                         ::testing::Values(os::ReaderKind::uring, os::ReaderKind::threads),
                         [](const auto& test) {
                           return test.param == os::ReaderKind::uring ? "uring" : "threads";
                         });

}  // namespace
}  // namespace sluice::io
