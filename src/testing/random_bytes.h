// Bytes that no two places have in common by chance: what the files of a fake drive hold. Tests
// only; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/random.h"

namespace sluice {

inline std::vector<std::byte> random_bytes(size_t count, uint64_t seed) {
  Random random(seed);
  std::vector<std::byte> bytes(count);
  for (std::byte& b : bytes) b = static_cast<std::byte>(random.next());
  return bytes;
}

}  // namespace sluice
