#include "io/device_probe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "base/units.h"
#include "testing/fake_drive_kinds.h"
#include "testing/random_bytes.h"
#include "testing/temp_folder.h"

namespace sluice::io {
namespace {

constexpr size_t kSingleReads = 5 + 5 * 3;  // for the latency, alone and followed by two

class DeviceProbeTest : public ::testing::Test {
 protected:
  DeviceProfile probe(const ProbeOptions& options, uint64_t file_bytes = 3 * kMiB,
                      FakeDriveOptions drive_options = {}) {
    std::vector<std::vector<std::byte>> files{random_bytes(file_bytes, 1)};
    const std::string path = folder_.write("file", std::span<const std::byte>(files[0]));
    const auto file = os::File::open(path, os::DirectMode::off);
    CHECK(file.ok());
    FakeDrive drive(std::move(drive_options), std::move(files));
    const DeviceProfile profile = probe_device(drive, 0, *file, options);
    EXPECT_EQ(drive.in_flight_count(), 0u);
    EXPECT_EQ(drive.misaligned_count(), 0u);
    EXPECT_EQ(drive.touched_count(), 0u) << "two reads into one buffer";
    reads_ = drive.log();
    for (const FakeRead& read : reads_) {
      EXPECT_EQ(read.op.bytes, reads_.front().op.bytes);
      EXPECT_LE(read.op.offset + read.op.bytes, file_bytes);
    }
    return profile;
  }

  std::vector<FakeRead> reads_;

 private:
  const TempFolder folder_;
};

TEST_F(DeviceProbeTest, ReadsAsExpertsAreRead) {
  const DeviceProfile profile =
      probe({.read_bytes = 10'000, .bytes_max = kMiB, .seconds_max = 60, .depth = 4});
  EXPECT_GT(profile.bytes_per_s, 0);
  EXPECT_GT(profile.latency_us, 0);
  EXPECT_EQ(reads_.front().op.bytes, 12'288u);
  EXPECT_EQ(reads_.size(), kSingleReads + kMiB / 12'288);
  const auto same_place = [&](const FakeRead& read) {
    return read.op.offset == reads_.front().op.offset;
  };
  EXPECT_LT(std::ranges::count_if(reads_, same_place), 10) << "windows are spread over the file";
}

TEST_F(DeviceProbeTest, ReadsSectorsWhereThereIsNoMemoryToReadInto) {
  for (const uint64_t bytes_max : {0u, 1u, 15u, 16u, 4096u}) {
    const DeviceProfile profile =
        probe({.read_bytes = 100'000, .bytes_max = bytes_max, .seconds_max = 60});
    EXPECT_EQ(profile.read_bytes, 4096u) << bytes_max;
    EXPECT_GT(profile.bytes_per_s, 0) << bytes_max;
  }
}

// By the drive's own clock the numbers are exact: 256 KiB at 0.5, 3, 7 and 1 GB/s, and of sixteen
// in flight the first one's latency is the only one that shows, unless they are served one by one.
TEST_F(DeviceProbeTest, MeasuresEachKindOfDrive) {
  const std::map<std::string_view, DeviceProfile> expected{
      {"slow", {.bytes_per_s = 0.4985e9, .latency_us = 624.288}},
      {"fast", {.bytes_per_s = 2.947e9, .latency_us = 187.381}},
      {"deep", {.bytes_per_s = 6.829e9, .latency_us = 97.449}},
      {"shallow", {.bytes_per_s = 0.7239e9, .latency_us = 362.144}}};
  for (const FakeDriveKind& kind : fake_drive_kinds()) {
    const DeviceProfile profile =
        probe({.read_bytes = 256 * kKiB, .bytes_max = 16 * kMiB, .seconds_max = 60}, 3 * kMiB,
              kind.options);
    EXPECT_NEAR(profile.bytes_per_s, expected.at(kind.name).bytes_per_s, 1e6) << kind.name;
    EXPECT_NEAR(profile.latency_us, expected.at(kind.name).latency_us, 0.001) << kind.name;
    EXPECT_NEAR(profile.delay_by_followers, 1, 1e-4) << kind.name << " serves in order";
  }
}

// 256 KiB at 2.2 GB/s take 119.156 us, and 50 us to find them.
TEST_F(DeviceProbeTest, FindsOutWhetherOthersDelayARead) {
  const DeviceProfile profile =
      probe({.read_bytes = 256 * kKiB, .bytes_max = 16 * kMiB, .seconds_max = 60}, 3 * kMiB,
            virtual_drive());
  EXPECT_NEAR(profile.latency_us, 169.156, 0.01);
  EXPECT_NEAR(profile.delay_by_followers, (50 + 3 * 119.156) / 169.156, 1e-4);
}

// An expert cache's slots are in no cache of the processor; neither is what the rate is read into.
TEST_F(DeviceProbeTest, EachReadForTheRateHasMemoryOfItsOwn) {
  probe({.read_bytes = 64 * kKiB, .bytes_max = 4 * kMiB, .seconds_max = 60});
  std::set<const std::byte*> buffers;
  for (const FakeRead& read : std::span(reads_).subspan(kSingleReads))
    buffers.insert(read.op.buffer);
  EXPECT_EQ(buffers.size(), 64u);
}

TEST_F(DeviceProbeTest, TimeBoundsTheReads) {
  EXPECT_GT(probe({.read_bytes = 4096, .seconds_max = 0, .depth = 16}).bytes_per_s, 0);
  EXPECT_EQ(reads_.size(), kSingleReads + 16);
  EXPECT_GT(probe({.read_bytes = 4096, .seconds_max = 0, .depth = 2}).bytes_per_s, 0);
  EXPECT_EQ(reads_.size(), 5 + 5 * 2 + 8) << "fewer would say nothing";
}

// A part of a large expert may have hundreds of MiB; sixteen buffers of that size were not planned
// for.
TEST_F(DeviceProbeTest, LargeExpertsDoNotMakeLargeBuffers) {
  EXPECT_GT(probe({.read_bytes = 5 * kGiB, .bytes_max = kMiB, .depth = 4}).bytes_per_s, 0);
  EXPECT_EQ(reads_.front().op.bytes, kMiB / 4);
}

// As when the context takes all the memory that there is, and the expert cache gets none.
TEST_F(DeviceProbeTest, WithoutMemoryItReadsSectors) {
  for (const uint64_t bytes_max : {0u, 3u, 4096u}) {
    EXPECT_GT(probe({.read_bytes = kMiB, .bytes_max = bytes_max, .depth = 4}).bytes_per_s, 0);
    EXPECT_EQ(reads_.front().op.bytes, 4096u);
  }
  EXPECT_GT(probe({.read_bytes = 0}).bytes_per_s, 0);
}

TEST_F(DeviceProbeTest, ASmallFileSaysNothing) {
  const DeviceProfile profile = probe({.read_bytes = 4096}, 8 * 4096 - 1);
  EXPECT_EQ(profile.bytes_per_s, 0);
  EXPECT_EQ(profile.latency_us, 0);
  EXPECT_TRUE(reads_.empty());
}

TEST_F(DeviceProbeTest, AFailedReadMakesItVoid) {
  for (const FakeFault fault : {FakeFault::broken, FakeFault::short_aligned}) {
    const DeviceProfile profile =
        probe({.read_bytes = 8192}, 3 * kMiB, {.planned = {{kSingleReads + 3, fault}}});
    EXPECT_EQ(profile.bytes_per_s, 0);
    EXPECT_EQ(profile.latency_us, 0);
  }
}

TEST_F(DeviceProbeTest, TheReadersDepthIsKept) {
  EXPECT_GT(probe({.read_bytes = 4096, .depth = 64}, 3 * kMiB, {.depth_max = 3}).bytes_per_s, 0);
}

}  // namespace
}  // namespace sluice::io
