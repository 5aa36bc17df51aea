// Bytes that no two places have in common by chance: what the files of a fake drive hold. Tests
// only; any thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/random.h"

namespace sluice {

inline std::vector<std::byte> random_bytes(size_t count, uint64_t seed) {
  Random random(seed);
  std::vector<std::byte> bytes(count);
  for (size_t i = 0; i < count; i += sizeof(uint64_t)) {
    const uint64_t word = random.next();
    std::memcpy(bytes.data() + i, &word, std::min(sizeof(word), count - i));
  }
  return bytes;
}

}  // namespace sluice
