// What the drive under a model file can do, measured by reading some of the file the way experts
// will be read: the same reader, direct where possible, windows of expert size, several at once.
// Without these numbers nobody can tell a slow engine from a slow drive.
#pragma once

#include <cstdint>

#include "os/async_read.h"

namespace sluice::io {

struct DeviceProfile {
  double bytes_per_s = 0;  ///< reading at depth, 0 when it could not be measured
  double latency_us = 0;   ///< median of single reads of the same size
  /// How many times as long a read takes when two others follow it at once. A drive that serves in
  /// order takes no longer; one that shares its bandwidth does, and so does one that answers only
  /// when it has nothing left to read, as virtual ones do.
  double delay_by_followers = 1;
  uint64_t read_bytes = 0;
};

struct ProbeOptions {
  uint64_t read_bytes = 1u << 20;  ///< of one read; less when `depth` of them exceed bytes_max
  /// Read for the rate, each read into memory of its own: the slots of an expert cache are in no
  /// cache of the processor either. (A virtual drive came to 2.6 GB/s with buffers used again and
  /// 2.2 without, 2026-11-30.)
  uint64_t bytes_max = 64u << 20;  ///< exceeded where it does not hold a sector for each read
  double seconds_max = 0.1;        ///< stop starting reads after this
  size_t depth = 16;
  /// Of the places that are read. A fresh one for each probe, lest the drive (or what stands behind
  /// a virtual one) answers from its memory: the same places, read run after run, came at twice
  /// the rate that the file's other parts had (virtual drive, 2026-11-30).
  uint64_t seed = 1;
};

/// Reads windows spread over the file. REQUIRES: nothing is in flight in the reader; on return
/// nothing is. A file too small for a handful of reads gives zeros. The buffers (`bytes_max`) are
/// released before it returns.
DeviceProfile probe_device(os::AsyncReader& reader, uint32_t file, const os::File& facts,
                           const ProbeOptions& options);

}  // namespace sluice::io
