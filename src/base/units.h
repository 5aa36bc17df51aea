// Sizes as people write and read them, and the rounding that alignment needs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace sluice {

inline constexpr uint64_t kKiB = uint64_t{1} << 10;
inline constexpr uint64_t kMiB = uint64_t{1} << 20;
inline constexpr uint64_t kGiB = uint64_t{1} << 30;

constexpr uint64_t ceil_div(uint64_t a, uint64_t b) {
  return (a + b - 1) / b;
}

/// REQUIRES: alignment is a power of two.
constexpr uint64_t round_down(uint64_t value, uint64_t alignment) {
  return value & ~(alignment - 1);
}
constexpr uint64_t round_up(uint64_t value, uint64_t alignment) {
  return round_down(value + alignment - 1, alignment);
}

/// "512K", "300M", "0.5G", "4096": a number, then K, M or G (powers of 1024; an "iB" or "B" after
/// it is allowed), or nothing for bytes. Negative, empty, non-finite and overflowing sizes are
/// usage errors.
Result<uint64_t> parse_size(std::string_view text);

/// "1.4 GiB", "312.0 MiB", "17 B".
std::string format_bytes(uint64_t bytes);

}  // namespace sluice
