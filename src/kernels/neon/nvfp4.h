// How the kernels of this folder see a block of NVFP4; for nvfp4.cc here and in i8mm/.
#pragma once

#include "kernels/neon/nibble_values.h"
#include "kernels/neon/plain_block.h"

namespace sluice::kernels::neon {
namespace {

struct Nvfp4 {
  using Block = BlockNVFP4;
  static constexpr size_t kElements = Block::kElements;
  static constexpr size_t kSumColumns = Block::kSubBlock;

  static int8x16_t codes(const std::byte* block, size_t g) {
    const uint8x8_t both = load8(block + offsetof(Block, qs) + 8 * g);
    return look_up(kFp4Table, nibbles_of_eight(both));
  }

  /// half_of_e4m3: read as binary16, the exponent is 8 too small; and it is to be the half.
  static float32x4_t scales(const std::byte* const* blocks, size_t s) {
    const uint32x4_t bytes = byte_of_each(blocks, offsetof(Block, scales) + s);
    const uint32x4_t nan = vceqq_u32(bytes, vdupq_n_u32(0x7f));
    const uint32x4_t numbers = vbicq_u32(vandq_u32(bytes, vdupq_n_u32(0x7f)), nan);
    const uint16x4_t halves = vmovn_u32(vshlq_n_u32(numbers, 7));
    return vmulq_n_f32(vcvt_f32_f16(vreinterpret_f16_u16(halves)), 0x1p7f);
  }
};

}  // namespace
}  // namespace sluice::kernels::neon
