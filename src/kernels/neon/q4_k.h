// How the kernels of this folder see a block of Q4_K; for q4_k.cc here and in i8mm/.
#pragma once

#include "kernels/neon/k_header.h"

namespace sluice::kernels::neon {
namespace {

struct Q4K : KHeader<BlockQ4_K> {
  static int8x16_t codes(const std::byte* block, size_t g) { return as_signed(low_bits(block, g)); }
};

}  // namespace
}  // namespace sluice::kernels::neon
