// How the kernels of this folder see a block of Q6_K; for q6_k.cc here and in i8mm/.
#pragma once

#include "kernels/neon/super_block.h"

namespace sluice::kernels::neon {
namespace {

struct Q6K {
  using Block = BlockQ6_K;
  static constexpr size_t kSubBlock = 16;

  static int8x16_t codes(const std::byte* block, size_t g) {
    const size_t half = g / 8;
    const size_t k = g / 2 % 4;
    const std::byte* ql = block + offsetof(Block, ql) + 64 * half + 32 * (k % 2) + 16 * (g % 2);
    const std::byte* qh = block + offsetof(Block, qh) + 32 * half + 16 * (g % 2);
    const uint8x16_t high = move_bits(load16(qh), 2 * k, 4, 48);
    return vsubq_s8(as_signed(vorrq_u8(nibbles(load16(ql), k / 2), high)), vdupq_n_s8(32));
  }

  static PerSubBlock<16> scales(const std::byte* block) {
    return widen(as_signed(load16(block + offsetof(Block, scales))));
  }
};

}  // namespace
}  // namespace sluice::kernels::neon
