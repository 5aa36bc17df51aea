// Fake drives of the kinds that are out there, for tests that must hold on each of them. The
// numbers are round on purpose: 512 KiB take 1,048,576 ns on the slow one, 174,763 on the fast one.
// Add faults, reordering or a seed to taste. Any thread.
#pragma once

#include <ostream>
#include <string_view>
#include <vector>

#include "testing/fake_drive.h"

namespace sluice {

/// A drive behind an old interface.
inline FakeDriveOptions slow_drive() {
  return {.service_max = 4, .latency_ns = 100'000, .bytes_per_ns = 0.5};
}

/// A common NVMe drive.
inline FakeDriveOptions fast_drive() {
  return {.service_max = 32, .latency_ns = 100'000, .bytes_per_ns = 3.0};
}

/// One that needs many reads at once, and rewards them.
inline FakeDriveOptions deep_drive() {
  return {.service_max = 64, .latency_ns = 60'000, .bytes_per_ns = 7.0};
}

/// One that serves a single read at a time, such as a throttled virtual one.
inline FakeDriveOptions shallow_drive() {
  return {.service_max = 1, .latency_ns = 100'000, .bytes_per_ns = 1.0};
}

/// The drive of a small virtual machine: a copy out of its host's memory, one read after the other,
/// and one interrupt when all of them are done. No member of fake_drive_kinds(), since on it
/// guesses beside a demand read cost more than the read queue promises.
inline FakeDriveOptions virtual_drive() {
  return {.service_max = 32, .latency_ns = 50'000, .bytes_per_ns = 2.2, .answers_together = true};
}

struct FakeDriveKind {
  std::string_view name;
  FakeDriveOptions options;

  /// For the names of tests.
  friend std::ostream& operator<<(std::ostream& out, const FakeDriveKind& kind) {
    return out << kind.name;
  }
};

inline std::vector<FakeDriveKind> fake_drive_kinds() {
  return {{"slow", slow_drive()},
          {"fast", fast_drive()},
          {"deep", deep_drive()},
          {"shallow", shallow_drive()}};
}

}  // namespace sluice
