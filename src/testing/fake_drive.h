// A drive for tests: an AsyncReader over files in memory, in virtual time, that can misbehave in
// every way a real one may. What sits on top of it (the read queue, the expert store, the whole
// engine) meets short reads, interruptions, errors, cut files and reordered completions in every
// test run, and the same ones again for the same seed.
//
// Time. The clock moves only when poll is asked to wait, by a little at each look in vain, and by
// advance(). A read waits until one of `service_max` places is free, takes `latency_ns` to be
// found, and then its bytes pass over one shared wire at `bytes_per_ns`, in order of submission:
//     found = start + latency        finished = max(found, wire free) + bytes / rate
// So one read at a time is bound by latency and many are bound by the wire, as on a real drive.
// What has been submitted is never overtaken: a read submitted behind k others of W ns on the wire
// each ends at most k · W later than alone if it finds a place at once (and that much later if they
// were submitted just before), plus one latency for each round of places it has to wait for. The
// log tells when each read ended, idle_ns() for how long the drive had nothing to do.
// testing/fake_drive_kinds.h has drives to choose from.
//
// Buffers. From submit on a buffer is filled with poison (NaN to any float format) and the data
// arrives only when poll returns the read. Whoever computes from a buffer too early gets nonsense;
// whoever writes to one in flight, or reads into it twice, is counted in touched_count(). Offset,
// length and buffer must be aligned as for a direct read; what is not completes with −EINVAL and is
// counted in misaligned_count().
//
// One thread at a time may call it, the observers included.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <queue>
#include <span>
#include <utility>
#include <vector>

#include "base/extent.h"
#include "base/random.h"
#include "os/async_read.h"

namespace sluice {

/// What happens to a read.
enum class FakeFault {
  none,
  short_aligned,    ///< fewer bytes come: whole sectors, at least one
  short_unaligned,  ///< fewer bytes come: not a whole number of sectors, at least one byte
  end_of_file,      ///< nothing comes, as if the file ended there
  interrupted,      ///< −EINTR
  busy,             ///< −EAGAIN
  broken,           ///< −EIO
  delayed,          ///< all is right, but later by up to `delay_max_ns`
};

/// Of all reads, the share that meets each fault.
struct FakeFaultShares {
  double short_aligned = 0;
  double short_unaligned = 0;
  double end_of_file = 0;
  double interrupted = 0;
  double busy = 0;
  double broken = 0;
  double delayed = 0;
};

struct FakeDriveOptions {
  uint64_t seed = 1;
  size_t depth_max = 64;
  uint32_t alignment = 4096;  ///< the sector; a power of two, at least 8

  size_t service_max = 32;
  uint64_t latency_ns = 80'000;
  double bytes_per_ns = 3.0;  ///< 3 GB/s
  /// Nothing comes back before all that was submitted is finished: one interrupt for a whole batch,
  /// and reads that join it while it is being served put off the answer to all of it.
  bool answers_together = false;
  uint64_t look_ns = 1'000;  ///< how far a look in vain moves the clock
  uint64_t delay_max_ns = 2'000'000;

  FakeFaultShares shares = {};
  /// Faults of single reads, by number in order of submission, from 0. They come before `shares`.
  std::vector<std::pair<uint64_t, FakeFault>> planned = {};
  /// Finished reads come back in random order, some of them not before a later poll.
  bool reorder = false;
};

/// One read as it happened.
struct FakeRead {
  os::ReadOp op;
  FakeFault fault;
  int64_t result;
  uint64_t submitted_ns;
  uint64_t finished_ns;      ///< when the drive is done with it
  uint64_t returned_ns = 0;  ///< when poll returned it, at finished_ns or later; 0 before
};

class FakeDrive final : public os::AsyncReader {
 public:
  FakeDrive(FakeDriveOptions options, std::vector<std::vector<std::byte>> files);
  ~FakeDrive() override;

  std::string_view name() const override { return "fake"; }
  size_t depth_max() const override { return options_.depth_max; }
  void submit(std::span<const os::ReadOp> ops) override;
  size_t poll(std::span<os::ReadCompletion> done, bool wait) override;

  uint64_t now_ns() const override { return now_ns_; }
  /// Lets time pass while the caller does something else.
  void advance(uint64_t ns) { now_ns_ += ns; }

  /// For reads submitted from now on the file ends at `bytes`, as if someone had cut it.
  void cut_file(uint32_t file, uint64_t bytes);
  /// Reads submitted from now on that touch the range fail with −EIO, every time.
  void break_range(FileExtent range) { broken_ranges_.push_back(range); }

  /// For how long, up to now, no read was in service.
  uint64_t idle_ns() const { return idle_ns_ + (now_ns_ - std::min(now_ns_, busy_until_ns_)); }
  /// Reads submitted and not returned by poll.
  size_t in_flight_count() const { return in_flight_.size(); }
  /// All reads, in order of submission.
  const std::vector<FakeRead>& log() const { return log_; }
  size_t misaligned_count() const { return misaligned_count_; }
  size_t touched_count() const { return touched_count_; }

 private:
  bool is_aligned(const os::ReadOp& op) const;
  bool is_broken(const os::ReadOp& op) const;
  FakeFault draw_fault(uint64_t number, Random& random) const;
  int64_t readable_bytes(const os::ReadOp& op) const;
  int64_t faulty_result(FakeFault fault, int64_t readable, Random& random) const;
  void put_off_answers();
  uint64_t schedule(int64_t transferred, uint64_t delay_ns);
  std::vector<uint64_t> choose_finished(size_t count_max, bool wait);
  os::ReadCompletion complete(uint64_t number);

  const FakeDriveOptions options_;
  const std::vector<std::vector<std::byte>> files_;
  std::vector<uint64_t> file_ends_;
  std::vector<FileExtent> broken_ranges_;

  uint64_t now_ns_ = 0;
  uint64_t wire_free_ns_ = 0;
  uint64_t busy_until_ns_ = 0;  ///< when all that was submitted is finished
  uint64_t idle_ns_ = 0;        ///< before the read submitted last
  /// When each of the places in service becomes free; the soonest on top.
  std::priority_queue<uint64_t, std::vector<uint64_t>, std::greater<>> places_;

  std::vector<uint64_t> in_flight_;  ///< numbers of reads, in order of submission
  std::vector<FakeRead> log_;        ///< by number
  Random order_random_;
  size_t misaligned_count_ = 0;
  size_t touched_count_ = 0;
};

}  // namespace sluice
