// What the read queue did. A request is counted as started in the class it was handed in with; when
// it is promoted, its end is counted under demand. Stated sums, true after every call to the queue:
//
//   each class but demand  started = finished + failed + cancelled + promoted + not ended
//   demand     started + promoted of all classes = finished + failed + cancelled + not ended
//   in all     started = finished + failed + cancelled + not ended
//   bytes      read_bytes ≥ cancelled_bytes, and ≥ the windows of finished requests less the
//              padding that lies behind the end of a file
//
// No counter ever goes down, so that two readings can be subtracted.
#pragma once

#include <array>
#include <cstdint>

#include "io/read_request.h"

namespace sluice::io {

struct ClassStats {
  uint64_t started_count = 0;    ///< requests handed in
  uint64_t finished_count = 0;   ///< requests whose bytes are all there
  uint64_t failed_count = 0;     ///< a read of theirs failed
  uint64_t cancelled_count = 0;  ///< given up by whoever handed them in
  uint64_t promoted_count = 0;   ///< became demand before they had ended; 0 for demand
  uint64_t wanted_bytes = 0;     ///< of finished requests
  uint64_t window_bytes = 0;     ///< of finished requests, with what alignment adds

  bool operator==(const ClassStats&) const = default;
};

struct IoStats {
  std::array<ClassStats, kReadClassCount> by_class{};
  uint64_t resumed_count = 0;    ///< short reads that were continued
  uint64_t retried_count = 0;    ///< EINTR, EAGAIN
  uint64_t read_bytes = 0;       ///< what the drive delivered, for whomever
  uint64_t cancelled_bytes = 0;  ///< of these, for requests that ended as cancelled: in vain
  /// Time in which a read was in flight, up to the last call that looked for finished reads. Seen
  /// from the calls, so that a read counts until somebody looks: never less than the drive was
  /// busy.
  uint64_t busy_ns = 0;

  const ClassStats& of(ReadClass read_class) const {
    return by_class[static_cast<size_t>(read_class)];
  }
  ClassStats& of(ReadClass read_class) { return by_class[static_cast<size_t>(read_class)]; }

  /// Requests that were guesses and became demand.
  uint64_t promoted_count() const {
    uint64_t count = 0;
    for (const ClassStats& stats : by_class) count += stats.promoted_count;
    return count;
  }

  /// Requests whose end would be counted in this class, and that have not ended.
  uint64_t not_ended_count(ReadClass read_class) const {
    const ClassStats& stats = of(read_class);
    const uint64_t arrived = read_class == ReadClass::demand ? promoted_count() : 0;
    return stats.started_count + arrived - stats.promoted_count - stats.finished_count -
           stats.failed_count - stats.cancelled_count;
  }
};

}  // namespace sluice::io
