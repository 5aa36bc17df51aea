// What the read queue did, by class of read. Stated sums: started = finished + failed + in flight.
#pragma once

#include <array>
#include <cstdint>

#include "io/read_request.h"

namespace sluice::io {

struct ClassStats {
  uint64_t started_count = 0;   ///< requests handed in
  uint64_t finished_count = 0;  ///< requests whose bytes are all there
  uint64_t failed_count = 0;
  uint64_t wanted_bytes = 0;  ///< of finished requests
  uint64_t window_bytes = 0;  ///< of finished requests, with what alignment adds
};

struct IoStats {
  std::array<ClassStats, kReadClassCount> by_class{};
  uint64_t resumed_count = 0;  ///< short reads that were continued
  uint64_t retried_count = 0;  ///< EINTR, EAGAIN

  const ClassStats& of(ReadClass read_class) const {
    return by_class[static_cast<size_t>(read_class)];
  }
  ClassStats& of(ReadClass read_class) { return by_class[static_cast<size_t>(read_class)]; }
};

}  // namespace sluice::io
