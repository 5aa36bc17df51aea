// What the read queue's order costs and saves, in the virtual time of slow, fast, deep and shallow
// drives. C is what a chunk takes on the wire, L the drive's latency. A demand read can be delayed
// by the prefetch chunks that are in service when it starts, and by no other guess:
//
//   delay ≤ k · C + ⌊k / places⌋ · L        k ≤ prefetch_in_service_max
//
// that is one chunk for each prefetch in progress, and where the drive cannot serve them all at
// once, the latency of those it has to wait for.
#include <gtest/gtest.h>

#include "base/units.h"
#include "io/read_queue.h"
#include "testing/checked_reading.h"
#include "testing/fake_drive_kinds.h"
#include "testing/random_bytes.h"

namespace sluice::io {
namespace {

constexpr uint64_t kDemandBytes = kMiB;
constexpr uint32_t kChunk = 512 * kKiB;
constexpr uint64_t kMemoryBytes = 64 * kMiB;

const Files& files() {
  static const Files result{random_bytes(8 * kMiB, 1)};
  return result;
}

/// A drive of a kind and a queue over it. Looking costs no time, so that all times are exact.
struct Bench {
  explicit Bench(FakeDriveOptions kind, const ReadQueueOptions& options = {})
      : places(kind.service_max),
        latency_ns(kind.latency_ns),
        bytes_per_ns(kind.bytes_per_ns),
        drive(without_looks(std::move(kind)), files()),
        reading(drive, files(), kSector, options, kMemoryBytes) {}

  static FakeDriveOptions without_looks(FakeDriveOptions options) {
    options.look_ns = 0;
    return options;
  }

  uint64_t wire_ns(uint64_t bytes) const {
    return static_cast<uint64_t>(static_cast<double>(bytes) / bytes_per_ns);
  }

  /// Computing, with a pump now and then.
  void compute(uint64_t ns) {
    for (const uint64_t end = drive.now_ns() + ns; drive.now_ns() < end;) {
      drive.advance(std::min<uint64_t>(5'000, end - drive.now_ns()));
      reading.queue().pump();
    }
  }

  /// Reads on demand; returns how much longer it took than it would have taken alone.
  uint64_t demand_delay_ns() {
    const size_t number = drive.log().size();
    const size_t wish = reading.push({0, 0, kDemandBytes});
    reading.queue().pump();
    const FakeRead read = drive.log().at(number);
    EXPECT_EQ(read.op.bytes, kDemandBytes) << "demand is first";
    EXPECT_EQ(read.submitted_ns, drive.now_ns()) << "and starts at once";
    while (reading.wish(wish).completed_count == 0) reading.queue().wait();
    EXPECT_EQ(drive.now_ns(), read.finished_ns);
    return read.finished_ns - read.submitted_ns - latency_ns - wire_ns(kDemandBytes);
  }

  const size_t places;
  const uint64_t latency_ns;
  const double bytes_per_ns;
  FakeDrive drive;
  Reading reading;
};

class ReadQueueService : public ::testing::TestWithParam<FakeDriveKind> {
 protected:
  const FakeDriveOptions& kind() const { return GetParam().options; }
};

INSTANTIATE_TEST_SUITE_P(Drives, ReadQueueService, ::testing::ValuesIn(fake_drive_kinds()),
                         [](const auto& test) { return std::string(test.param.name); });

/// The longest delay of a demand read that comes at any time during a prefetch of 4 MiB.
uint64_t longest_delay_ns(const FakeDriveOptions& kind, const ReadQueueOptions& options) {
  uint64_t longest_ns = 0;
  const uint64_t prefetch_ns = Bench(kind).wire_ns(4 * kMiB);
  for (uint64_t part = 0; part < 16; ++part) {
    Bench bench(kind, options);
    bench.reading.push({0, kMiB, 4 * kMiB}, ReadClass::prefetch);
    bench.reading.queue().pump();
    bench.compute(prefetch_ns * part / 16);
    const uint64_t ahead = bench.reading.in_service(ReadClass::prefetch);
    const uint64_t delay_ns = bench.demand_delay_ns();
    EXPECT_LE(ahead, options.prefetch_in_service_max);
    EXPECT_LE(delay_ns, ahead * bench.wire_ns(options.prefetch_chunk_bytes) +
                            ahead / bench.places * bench.latency_ns);
    longest_ns = std::max(longest_ns, delay_ns);
    bench.reading.queue().drain();
    bench.reading.check();
  }
  return longest_ns;
}

TEST_P(ReadQueueService, APrefetchInProgressDelaysDemandByAtMostOneChunk) {
  const std::map<std::string_view, uint64_t> longest_ns{
      {"slow", 1'048'576}, {"fast", 174'762}, {"deep", 74'898}, {"shallow", 524'288 + 100'000}};
  EXPECT_EQ(longest_delay_ns(kind(), {.prefetch_in_service_max = 1}),
            longest_ns.at(GetParam().name));
}

TEST_P(ReadQueueService, FourInProgressDelayItByAtMostFour) {
  const std::map<std::string_view, uint64_t> longest_ns{{"slow", 4 * 1'048'576},
                                                        {"fast", 4 * 174'762},
                                                        {"deep", 4 * 74'898},
                                                        {"shallow", 4 * (524'288 + 100'000)}};
  EXPECT_EQ(longest_delay_ns(kind(), {}), longest_ns.at(GetParam().name));
}

TEST_P(ReadQueueService, TheSizeOfTheGuessDoesNotMatter) {
  std::vector<uint64_t> delays;
  for (const uint64_t bytes : {2 * kMiB, 7 * kMiB}) {
    Bench bench(kind());
    bench.reading.push({0, kMiB, bytes}, ReadClass::prefetch);
    bench.reading.queue().pump();
    delays.push_back(bench.demand_delay_ns());
  }
  EXPECT_EQ(delays[0], delays[1]);
  Bench whole(kind(), {.prefetch_chunk_bytes = 8 * kMiB});  // what chunks are for
  whole.reading.push({0, kMiB, 7 * kMiB}, ReadClass::prefetch);
  whole.reading.queue().pump();
  EXPECT_GT(whole.demand_delay_ns(), 2 * delays[0]);
}

TEST_P(ReadQueueService, WhileDemandIsInServiceTwoGuessesAre) {
  Bench bench(kind());
  Reading& reading = bench.reading;
  for (int i = 0; i < 6; ++i) reading.push({0, kMiB, 4 * kMiB}, ReadClass::prefetch);
  reading.queue().pump();
  // Two demand reads take turns, so that one is always in service.
  int demand_count = 0;
  const auto push_demand = [&](size_t) {
    if (++demand_count <= 30) reading.push({0, 0, kDemandBytes});
  };
  push_demand(0);
  push_demand(0);
  reading.on_end = [&](size_t index) {
    if (reading.wish(index).read_class == ReadClass::demand) push_demand(index);
  };
  reading.queue().pump();
  EXPECT_EQ(reading.in_service(ReadClass::prefetch), 4u) << "they cannot be called back";
  uint32_t most_later = 0;
  while (demand_count < 30) {
    EXPECT_GE(reading.in_service(ReadClass::demand), 1u);
    if (demand_count > 8)
      most_later = std::max(most_later, reading.in_service(ReadClass::prefetch));
    reading.queue().wait();
  }
  EXPECT_EQ(most_later, 2u);
  reading.queue().drain();
  reading.check();
}

TEST_P(ReadQueueService, DemandAfterDemandAtRandomTimesKeepsTheBound) {
  Random random(1);
  Bench bench(kind());
  const uint64_t chunk_ns = bench.wire_ns(kChunk);
  for (int i = 0; i < 60; ++i) {
    while (bench.reading.queue().wants_prefetch() || i % 8 == 0) {
      bench.reading.push({0, random.below(kMiB), 1 + random.below(3 * kMiB)}, ReadClass::prefetch);
      bench.reading.queue().pump();
      if (i % 8 == 0) break;
    }
    bench.compute(random.below(4) == 0 ? 0 : random.below(6 * chunk_ns));
    const uint64_t ahead = bench.reading.in_service(ReadClass::prefetch);
    EXPECT_LE(ahead, 4u);
    EXPECT_LE(bench.demand_delay_ns(), ahead * chunk_ns + ahead / bench.places * bench.latency_ns);
  }
  bench.reading.queue().drain();
  bench.reading.check();
}

TEST_P(ReadQueueService, AloneAPrefetchIsAsFastAsTheDrive) {
  Bench bench(kind());
  bench.reading.push({0, 0, 8 * kMiB}, ReadClass::prefetch);
  bench.reading.queue().drain();
  const uint64_t latencies = bench.places > 1 ? 1 : 16;
  EXPECT_EQ(bench.drive.now_ns(), latencies * bench.latency_ns + 16 * bench.wire_ns(kChunk));
  EXPECT_EQ(bench.drive.idle_ns(), 0u);
}

TEST_P(ReadQueueService, DemandFindsAPlaceWhateverElseIsInService) {
  FakeDriveOptions options = kind();
  options.depth_max = 8;
  Bench bench(options, {.prefetch_chunk_bytes = kSector,
                        .load_chunk_bytes = kSector,
                        .prefetch_in_service_max = 100});
  bench.reading.push({0, 0, kMiB}, ReadClass::prefetch);
  bench.reading.queue().pump();
  EXPECT_EQ(bench.drive.in_flight_count(), 4u);
  for (int i = 0; i < 4; ++i) bench.reading.push({0, 0, kSector});
  bench.reading.queue().pump();
  EXPECT_EQ(bench.reading.in_service(ReadClass::demand), 4u);
  bench.reading.queue().drain();
  bench.reading.push({0, 0, kMiB}, ReadClass::load);
  bench.reading.queue().pump();
  EXPECT_EQ(bench.drive.in_flight_count(), 4u);
  for (int i = 0; i < 4; ++i) bench.reading.push({0, 0, kSector});
  bench.reading.queue().pump();
  EXPECT_EQ(bench.reading.in_service(ReadClass::demand), 4u);
  bench.reading.queue().drain();
  bench.reading.check();
}

TEST_P(ReadQueueService, LoadReadsRestWhileDemandIsInService) {
  Bench bench(kind());
  bench.reading.push({0, 0, kDemandBytes});
  bench.reading.push({0, 0, 4 * kMiB}, ReadClass::load);
  bench.reading.queue().pump();
  EXPECT_EQ(bench.drive.log().size(), 1u);
  bench.reading.queue().wait();
  EXPECT_EQ(bench.drive.log().size(), 5u);
  bench.reading.queue().drain();
  bench.reading.check();
}

/// Promoted at any time, it is here as soon as if the read began only then; on a drive with few
/// places the chunks on their way cost their latency.
TEST_P(ReadQueueService, ARightGuessIsNeverSlowerThanNone) {
  const uint64_t bytes = 3 * kMiB;
  const uint64_t alone_ns = Bench(kind()).wire_ns(bytes) + kind().latency_ns;
  for (uint64_t part = 0; part < 10; ++part) {
    Bench bench(kind());
    const size_t wish = bench.reading.push({0, 0, bytes}, ReadClass::prefetch);
    bench.reading.queue().pump();
    bench.compute(alone_ns * part / 10);
    const uint64_t start_ns = bench.drive.now_ns();
    bench.reading.promote(wish);
    bench.reading.queue().drain();
    EXPECT_LE(bench.drive.now_ns() - start_ns, alone_ns + 4 / bench.places * bench.latency_ns);
    EXPECT_EQ(bench.reading.stats().read_bytes, bytes);
    bench.reading.check();
  }
}

TEST_P(ReadQueueService, BusyTimeIsTheDrivesWhenSomebodyLooks) {
  Bench bench(kind());
  bench.reading.push({0, 0, kDemandBytes});
  bench.reading.queue().wait();
  const uint64_t read_ns = bench.latency_ns + bench.wire_ns(kDemandBytes);
  EXPECT_EQ(bench.reading.stats().busy_ns, read_ns);
  bench.compute(1'000'000);
  EXPECT_EQ(bench.reading.stats().busy_ns, read_ns) << "nothing was in flight";
  EXPECT_EQ(bench.drive.idle_ns(), 1'000'000u);
  bench.reading.push({0, 0, kDemandBytes});
  bench.reading.queue().pump();
  bench.drive.advance(read_ns + 500'000);  // nobody looks for longer than it takes
  bench.reading.queue().pump();
  EXPECT_EQ(bench.reading.stats().busy_ns, 2 * read_ns + 500'000);
  EXPECT_EQ(bench.drive.idle_ns(), 1'500'000u);
  EXPECT_EQ(bench.reading.queue().now_ns(), bench.drive.now_ns());
}

}  // namespace
}  // namespace sluice::io
