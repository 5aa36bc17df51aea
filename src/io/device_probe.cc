#include "io/device_probe.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "base/random.h"
#include "base/units.h"
#include "os/arena.h"
#include "os/clock.h"

namespace sluice::io {
namespace {

constexpr size_t kRounds = 5;
constexpr size_t kFollowers = 2;
constexpr size_t kReadsMin = 8;  ///< below this a rate says nothing

/// By how much others may delay a read that they follow; chance alone does a little.
constexpr double kDelayMax = 1.5;

/// Reads windows of one size at random places of one file.
class Probe {
 public:
  Probe(os::AsyncReader& reader, uint32_t file, uint64_t window_count, uint64_t read_bytes,
        std::byte* buffers, uint64_t seed)
      : reader_(reader),
        file_(file),
        window_count_(window_count),
        read_bytes_(read_bytes),
        buffers_(buffers),
        random_(seed) {}

  void start(uint64_t buffer_index) {
    const os::ReadOp op{.file = file_,
                        .offset = random_.below(window_count_) * read_bytes_,
                        .buffer = buffers_ + buffer_index * read_bytes_,
                        .bytes = static_cast<uint32_t>(read_bytes_),
                        .tag = buffer_index};
    reader_.submit({&op, 1});
  }

  /// Waits for one read; its buffer is free again. A failed read makes the probe void.
  uint64_t finish_one() {
    os::ReadCompletion done{};
    reader_.poll({&done, 1}, true);
    failed_ |= done.result != static_cast<int64_t>(read_bytes_);
    return done.tag;
  }

  uint64_t now_ns() const { return reader_.now_ns(); }
  bool failed() const { return failed_; }

 private:
  os::AsyncReader& reader_;
  const uint32_t file_;
  const uint64_t window_count_;
  const uint64_t read_bytes_;
  std::byte* const buffers_;
  Random random_;
  bool failed_ = false;
};

using Latencies = std::array<double, kRounds>;  // in us, the least first

/// How long the first of so many reads takes that start together.
Latencies latencies(Probe& probe, size_t count) {
  Latencies result{};
  for (double& latency_us : result) {
    const uint64_t start = probe.now_ns();
    for (size_t i = 0; i < count; ++i) probe.start(i);
    size_t left = count;
    while (probe.finish_one() != 0) --left;
    latency_us = 1e6 * os::seconds_between(start, probe.now_ns());
    while (--left > 0) probe.finish_one();
  }
  std::sort(result.begin(), result.end());
  return result;
}

double rate_at_depth(Probe& probe, uint64_t read_bytes, size_t depth, const ProbeOptions& options) {
  const uint64_t fresh_count = options.bytes_max / read_bytes;
  const uint64_t reads_max = std::max<uint64_t>(fresh_count, kReadsMin);
  const uint64_t start = probe.now_ns();
  uint64_t started = 0, finished = 0;
  for (; started < std::min<uint64_t>(depth, reads_max); ++started) probe.start(started);
  while (finished < started) {
    const uint64_t buffer = probe.finish_one();
    ++finished;
    const bool in_time = os::seconds_between(start, probe.now_ns()) < options.seconds_max;
    if (started < reads_max && (in_time || started < kReadsMin)) {
      probe.start(started < fresh_count ? started : buffer);
      ++started;
    }
  }
  return static_cast<double>(finished * read_bytes) / os::seconds_between(start, probe.now_ns());
}

/// The forward pass looks after its reads more often than this.
constexpr double kLookSeconds = 50e-6;

}  // namespace

uint32_t plan_prefetch_depth(const DeviceProfile& profile, uint32_t chunk_bytes, uint32_t most) {
  if (profile.bytes_per_s <= 0 || most <= 2) return most;
  const double on_wire = static_cast<double>(profile.read_bytes) / profile.bytes_per_s;
  const double to_find = std::max(0.0, profile.latency_us * 1e-6 - on_wire) + kLookSeconds;
  const double depth = 1 + std::ceil(to_find * profile.bytes_per_s / chunk_bytes);
  return static_cast<uint32_t>(std::clamp<double>(depth, 2, most));
}

uint32_t plan_prefetch_beside_demand(const DeviceProfile& profile, uint32_t most) {
  return profile.delay_by_followers > kDelayMax ? 0 : most;
}

DeviceProfile probe_device(os::AsyncReader& reader, uint32_t file, const os::File& facts,
                           const ProbeOptions& options) {
  const size_t depth = std::min(options.depth, reader.depth_max());
  // At least a sector each, however little there is to read into.
  const uint64_t share = std::max<uint64_t>(options.bytes_max / depth, 1);
  const uint64_t read_bytes = round_up(std::min(options.read_bytes, share), facts.alignment());
  const uint64_t window_count = facts.bytes() / read_bytes;
  if (window_count < kReadsMin) return {};
  auto buffers =
      os::Arena::allocate(std::max(options.bytes_max, depth * read_bytes), "drive probe");
  if (!buffers) return {};
  // What is touched only when a read arrives would count as the drive's time.
  for (uint64_t at = 0; at < buffers->bytes(); at += os::page_bytes()) buffers->begin()[at] = {};
  Probe probe(reader, file, window_count, read_bytes, buffers->begin(), options.seed);
  DeviceProfile profile;
  profile.read_bytes = read_bytes;
  const Latencies alone = latencies(probe, 1);
  const Latencies followed = latencies(probe, std::min(depth, 1 + kFollowers));
  profile.latency_us = alone[kRounds / 2];
  // What disturbs a read makes it longer. The least are those that nothing has disturbed.
  profile.delay_by_followers = followed.front() / alone.front();
  profile.bytes_per_s = rate_at_depth(probe, read_bytes, depth, options);
  return probe.failed() ? DeviceProfile{} : profile;
}

}  // namespace sluice::io
