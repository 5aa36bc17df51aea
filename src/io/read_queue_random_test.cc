// The read queue under random schedules: on a drive that misbehaves, and on real files.
#include <gtest/gtest.h>

#include "base/random.h"
#include "io/read_queue.h"
#include "testing/checked_reading.h"
#include "testing/fake_drive_kinds.h"
#include "testing/random_bytes.h"
#include "testing/temp_folder.h"

namespace sluice::io {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr uint64_t kScheduleCount = 100;
#else
constexpr uint64_t kScheduleCount = 2000;  // a million operations in all
#endif
constexpr int kOperationCount = 500;

/// A schedule drawn from a seed: requests of all classes over two files, handed in, promoted,
/// cancelled, pumped and waited for in random order, also from within the sinks, on a drive of a
/// random kind with the given faults.
class RandomSchedule {
 public:
  RandomSchedule(uint64_t seed, const FakeFaultShares& shares)
      : random_(seed),
        alignment_(random_.below(2) == 0 ? 512 : 4096),
        files_{random_bytes(40 * kSector + random_.below(9000), seed),
               random_bytes(3 * kSector + random_.below(9000), ~seed)},
        drive_(draw_drive(seed, shares), files_),
        reading_(drive_, files_, alignment_, draw_queue()) {
    reading_.on_end = [this](size_t) {
      if (random_.below(8) == 0) act();
    };
  }

  void run() {
    for (int i = 0; i < kOperationCount && !::testing::Test::HasFatalFailure(); ++i) {
      if (random_.below(2) == 0)
        act();
      else
        go_on();
      reading_.check_state();
    }
    reading_.on_end = nullptr;
    reading_.queue().drain();
    reading_.check();
    EXPECT_EQ(drive_.misaligned_count() + drive_.touched_count() + drive_.in_flight_count(), 0u);
    EXPECT_GE(reading_.stats().busy_ns, drive_.now_ns() - drive_.idle_ns());
  }

  size_t failed_count() const {
    const IoStats& stats = reading_.stats();
    return stats.by_class[0].failed_count + stats.by_class[1].failed_count +
           stats.by_class[2].failed_count;
  }

 private:
  FakeDriveOptions draw_drive(uint64_t seed, const FakeFaultShares& shares) {
    FakeDriveOptions options = fake_drive_kinds()[random_.below(4)].options;
    options.seed = seed;
    options.depth_max = 1 + random_.below(8);
    options.alignment = alignment_;
    options.shares = shares;
    options.reorder = random_.below(4) != 0;
    return options;
  }

  ReadQueueOptions draw_queue() {
    const auto sectors = [this](uint64_t count_max) {
      return static_cast<uint32_t>(alignment_ * (1 + random_.below(count_max)));
    };
    return {.request_count_max = 1 + random_.below(12),
            .prefetch_chunk_bytes = sectors(4),
            .load_chunk_bytes = sectors(4),
            .demand_read_bytes_max = random_.below(2) == 0 ? sectors(6) : 1u << 30,
            .prefetch_in_service_max = static_cast<uint32_t>(1 + random_.below(5)),
            .prefetch_in_service_beside_demand_max = static_cast<uint32_t>(random_.below(3))};
  }

  /// What a sink may do as well.
  void act() {
    const uint64_t what = random_.below(8);
    if (what < 5) {
      push();
    } else if (reading_.wish_count() > 0) {
      const size_t index = draw_wish();
      if (what == 5)
        reading_.cancel(index);
      else
        reading_.promote(index);
    }
  }

  void push() {
    if (!reading_.queue().has_room()) return;
    const auto file = static_cast<uint32_t>(random_.below(2));
    const uint64_t offset = random_.below(files_[file].size());
    const uint64_t bytes_max = std::min<uint64_t>(files_[file].size() - offset, 12 * alignment_);
    reading_.push({file, offset, 1 + random_.below(bytes_max)},
                  static_cast<ReadClass>(random_.below(kReadClassCount)));
  }

  /// Mostly one that has not ended, sometimes a stale one.
  size_t draw_wish() {
    const auto open = reading_.open_wishes();
    if (open.empty() || random_.below(8) == 0) return random_.below(reading_.wish_count());
    return open[random_.below(open.size())];
  }

  void go_on() {
    const uint64_t what = random_.below(100);
    if (what < 40)
      reading_.queue().pump();
    else if (what < 60)
      drive_.advance(random_.below(500'000));
    else if (what == 60)
      reading_.give_up_waiting();
    else if (reading_.queue().request_count() > 0)
      reading_.queue().wait();
  }

  Random random_;
  const uint32_t alignment_;
  const Files files_;
  FakeDrive drive_;
  Reading reading_;
};

TEST(ReadQueueRandom, WhatCanBeRepairedIsRepaired) {
  const FakeFaultShares shares{.short_aligned = 0.15,
                               .short_unaligned = 0.15,
                               .interrupted = 0.1,
                               .busy = 0.1,
                               .delayed = 0.2};
  for (uint64_t seed = 1; seed <= kScheduleCount / 2 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    RandomSchedule schedule(seed, shares);
    schedule.run();
    EXPECT_EQ(schedule.failed_count(), 0u);
  }
}

TEST(ReadQueueRandom, WhatCannotBeRepairedFailsCleanly) {
  const FakeFaultShares shares{.short_aligned = 0.1,
                               .short_unaligned = 0.1,
                               .end_of_file = 0.1,
                               .interrupted = 0.1,
                               .broken = 0.1,
                               .delayed = 0.1};
  size_t failed_count = 0;
  for (uint64_t seed = 1; seed <= kScheduleCount / 2 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    RandomSchedule schedule(~seed, shares);
    schedule.run();
    failed_count += schedule.failed_count();
  }
  EXPECT_GT(failed_count, kScheduleCount);
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
