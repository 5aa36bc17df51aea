// The read queue under random schedules: on a drive that misbehaves, and on real files.
#include <gtest/gtest.h>

#include "base/random.h"
#include "io/read_queue.h"
#include "testing/checked_reading.h"
#include "testing/fake_drive.h"
#include "testing/random_bytes.h"
#include "testing/temp_folder.h"

namespace sluice::io {
namespace {

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
