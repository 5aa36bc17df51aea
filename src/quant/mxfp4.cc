#include "quant/decode.h"
#include "quant/fp4.h"
#include "quant/small_block.h"

namespace sluice {

void unpack_mxfp4(const BlockMXFP4& block, int8_t* q) {
  unpack_half_bytes(block.qs, sizeof(block.qs), q);
  for (size_t i = 0; i < kSmallBlock; ++i) q[i] = kTwiceE2m1[q[i]];
}

void decode_mxfp4(const std::byte* blocks, size_t block_count, float* out) {
  for (size_t b = 0; b < block_count; ++b, out += kSmallBlock) {
    const auto block = load_block<BlockMXFP4>(blocks, b);
    const float d = half_of_e8m0(block.e);
    int8_t q[kSmallBlock];
    unpack_mxfp4(block, q);
    for (size_t i = 0; i < kSmallBlock; ++i) out[i] = d * static_cast<float>(q[i]);
  }
}

}  // namespace sluice
