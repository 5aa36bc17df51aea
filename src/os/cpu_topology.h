// Which logical CPUs are worth computing on. Two of one physical core share its vector units and
// its way to memory, and a thread on an efficiency core keeps the others waiting at every barrier:
// so one thread for each physical performance core. Reads /sys; on a system without it every CPU
// counts. Any thread; each call asks anew. `root` stands for "/" in tests.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace sluice::os {

/// Physical cores among `cpus` (logical ids) that have more than three quarters of the capacity of
/// the fastest among them; at least 1.
size_t performance_core_count(const std::string& root, std::span<const int> cpus);

}  // namespace sluice::os
