#include "quant/blocks.h"
#include "quant/decode.h"
#include "quant/sub_blocks.h"

namespace sluice {

void unpack_q2_k(const BlockQ2_K& block, int8_t* q) {
  unpack_two_bits(block.qs, q);
}

Q2KScales unpack_q2_k_scales(const uint8_t* packed) {
  Q2KScales scales;
  for (size_t s = 0; s < kSuperBlock / 16; ++s) {
    scales.scale[s] = packed[s] & 15;
    scales.min[s] = packed[s] >> 4;
  }
  return scales;
}

void decode_q2_k(const std::byte* blocks, size_t block_count, float* out) {
  for (size_t b = 0; b < block_count; ++b, out += kSuperBlock) {
    const auto block = load_block<BlockQ2_K>(blocks, b);
    const Q2KScales scales = unpack_q2_k_scales(block.scales);
    int8_t q[kSuperBlock];
    unpack_q2_k(block, q);
    decode_scaled_with_min(block.d, block.dmin, scales.scale, scales.min, q, out);
  }
}

}  // namespace sluice
