// Where an expert stands in the order of leaving: the lowest key leaves first. Keys change when a
// policy is told something and not when it is asked, so that looking for the least of thousands of
// experts is a scan of numbers. Plain data.
#pragma once

#include <cstdint>

namespace sluice {

struct LeaveKey {
  double worth = 0;
  uint64_t last_use = 0;  ///< decides among equal worths; the higher, the more recent

  friend bool operator<(const LeaveKey& a, const LeaveKey& b) {
    return a.worth != b.worth ? a.worth < b.worth : a.last_use < b.last_use;
  }
  friend bool operator==(const LeaveKey&, const LeaveKey&) = default;
};

}  // namespace sluice
