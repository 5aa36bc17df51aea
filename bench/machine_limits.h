// What the machine can do, measured: the limits that a kernel's rate is to be seen beside. For the
// benchmarks; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/kernels.h"

namespace sluice::bench {

/// Bytes per second of one plain pass over memory, the best of some.
/// REQUIRES: memory is far larger than the last-level cache.
double measure_read_rate(std::span<const std::byte> memory);

/// Operations per second (one multiply-add is two) of nothing but the ISA's fastest multiplication
/// of quantised weights; 0 where the table has none.
double measure_multiply_rate(const kernels::KernelTable& table);

}  // namespace sluice::bench
