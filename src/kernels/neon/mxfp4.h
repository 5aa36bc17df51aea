// How the kernels of this folder see a block of MXFP4; for mxfp4.cc here and in i8mm/.
#pragma once

#include "kernels/neon/nibble_values.h"
#include "kernels/neon/plain_block.h"

namespace sluice::kernels::neon {
namespace {

struct Mxfp4 {
  using Block = BlockMXFP4;
  static constexpr size_t kElements = kSmallBlock;
  static constexpr size_t kSumColumns = kSmallBlock;

  static int8x16_t codes(const std::byte* block, size_t half) {
    return look_up(kFp4Table, nibbles(load16(block + offsetof(Block, qs)), half));
  }

  /// half_of_e8m0: the exponent is e − 1, and where that is not positive the float subnormal.
  static float32x4_t scales(const std::byte* const* blocks, size_t) {
    const uint32x4_t e = byte_of_each(blocks, offsetof(Block, e));
    const uint32x4_t normal = vshlq_n_u32(vsubq_u32(e, vdupq_n_u32(1)), 23);
    const uint32x4_t subnormal = vshlq_u32(vdupq_n_u32(0x200000), vreinterpretq_s32_u32(e));
    return vreinterpretq_f32_u32(vbslq_u32(vcltq_u32(e, vdupq_n_u32(2)), subnormal, normal));
  }
};

}  // namespace
}  // namespace sluice::kernels::neon
