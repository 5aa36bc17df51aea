// The limits of control groups: containers and services are cut down by these, and what the
// machine has says little. Every group from the process's own up to the root counts, in both
// versions of the interface, which may be mounted side by side.
//
// /proc/self/cgroup names the process's groups, /proc/self/mountinfo tells where they can be seen.
// Reads files only, so it finds nothing on a system without them. Any thread; each call asks anew.
// `root` stands for "/" in tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace sluice::os {

struct CgroupMemory {
  /// The smallest of limit − (usage − what can be reclaimed); empty when nothing limits. The page
  /// cache of files can be reclaimed, and what the kernel keeps of names and inodes (slabs).
  std::optional<uint64_t> left_bytes;
  std::optional<uint64_t> limit_bytes;  ///< the smallest limit
};
CgroupMemory cgroup_memory(const std::string& root);

/// The folder of the process's own group in version 2 of the interface.
std::optional<std::string> cgroup_v2_folder(const std::string& root);

/// The smallest CPU quota in whole cores, rounded up, at least 1; empty when there is none.
std::optional<size_t> cgroup_core_limit(const std::string& root);

}  // namespace sluice::os
