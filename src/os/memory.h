// How much memory there is and how much of it we use. Any thread; each call asks the system anew.
#pragma once

#include <cstdint>
#include <optional>

namespace sluice::os {

struct MemoryState {
  uint64_t total_bytes = 0;      ///< of the machine
  uint64_t available_bytes = 0;  ///< what the system could give without swapping (MemAvailable)
  /// What the control groups of this process (all ancestors, v1 and v2) still allow it: the
  /// smallest of limit − (usage − what can be reclaimed). Empty when nothing limits.
  std::optional<uint64_t> cgroup_left_bytes;
  std::optional<uint64_t> cgroup_limit_bytes;  ///< the smallest limit among them
};
MemoryState memory_state();

/// Resident set of this process: now, and the most it ever was.
uint64_t resident_bytes();
uint64_t resident_peak_bytes();

/// The parsers behind memory_state, apart from the file system so that they can be tested.
/// `root` stands for "/" in tests.
MemoryState memory_state_under(const char* root);

}  // namespace sluice::os
