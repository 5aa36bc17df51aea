// The scales and mins of Q4_K and Q5_K, and the nibbles that both begin with.
#pragma once

#include "kernels/neon/super_block.h"

namespace sluice::kernels::neon {
namespace {

template <class KBlock>
struct KHeader {
  using Block = KBlock;
  static constexpr size_t kSubBlock = 32;

  // quant/blocks.h describes the packing of the 12 bytes (unpack_k_scales); here four sub-blocks
  // are done at once in a 32-bit word.
  static PerSubBlock<8> scales(const std::byte* block) { return widen(eight_bytes(block, 0)); }
  static PerSubBlock<8> mins(const std::byte* block) { return widen(eight_bytes(block, 1)); }

  /// The low four bits of the 16 codes from 16·g on: those of 32 columns are the low halves of as
  /// many bytes, those of the next 32 the high halves.
  static uint8x16_t low_bits(const std::byte* block, size_t g) {
    return nibbles(load16(block + offsetof(Block, qs) + 32 * (g / 4) + 16 * (g % 2)), g / 2 % 2);
  }

 private:
  /// The scales (0) or the mins (1), in bytes.
  static uint8x8_t eight_bytes(const std::byte* block, size_t which) {
    const std::byte* packed = block + offsetof(Block, scales);
    const auto first = load_integer<uint32_t>(packed + 4 * which);
    const auto low_halves = load_integer<uint32_t>(packed + 8) >> (4 * which);
    const uint32_t low = first & 0x3f3f3f3fu;
    const uint32_t high = (low_halves & 0x0f0f0f0fu) | ((first >> 2) & 0x30303030u);
    return vcreate_u8(uint64_t{high} << 32 | low);
  }
};

}  // namespace
}  // namespace sluice::kernels::neon
