// How the kernels of this folder see a block of Q2_K; for q2_k.cc here and in i8mm/.
#pragma once

#include "kernels/neon/super_block.h"

namespace sluice::kernels::neon {
namespace {

struct Q2K {
  using Block = BlockQ2_K;
  static constexpr size_t kSubBlock = 16;

  static int8x16_t codes(const std::byte* block, size_t g) {
    return as_signed(two_bits(block + offsetof(Block, qs), g));
  }

  static PerSubBlock<16> scales(const std::byte* block) { return halves(block, 0); }
  static PerSubBlock<16> mins(const std::byte* block) { return halves(block, 1); }

 private:
  static PerSubBlock<16> halves(const std::byte* block, size_t half) {
    return widen(as_signed(nibbles(load16(block + offsetof(Block, scales)), half)));
  }
};

}  // namespace
}  // namespace sluice::kernels::neon
