// Blocks of any format whose weights are of ordinary size, for tests and benchmarks of formats that
// have no encoder: random bytes, drawn again until they decode to that. Any thread.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "quant/dtype.h"
#include "testing/random_bytes.h"

namespace sluice {

/// True where the largest weight of the block is in 1/16 … 1.
inline bool is_moderate(const DtypeInfo& info, std::span<const std::byte> block) {
  std::vector<float> weights(info.block_elements);
  info.decode(block.data(), 1, weights.data());
  float largest = 0;
  for (const float w : weights) {
    if (!(std::abs(w) <= 1.0f)) return false;  // nor NaN
    largest = std::max(largest, std::abs(w));
  }
  return largest >= 1.0f / 16;
}

/// REQUIRES: the format has a decoder.
inline std::vector<std::byte> moderate_blocks(Dtype dtype, size_t block_count, uint64_t seed) {
  const DtypeInfo& info = dtype_info(dtype);
  std::vector<std::byte> blocks;
  while (blocks.size() < block_count * info.block_bytes) {
    const std::vector<std::byte> block = random_bytes(info.block_bytes, ++seed);
    if (is_moderate(info, block)) blocks.insert(blocks.end(), block.begin(), block.end());
  }
  return blocks;
}

}  // namespace sluice
