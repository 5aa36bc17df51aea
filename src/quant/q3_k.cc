#include "quant/blocks.h"
#include "quant/decode.h"
#include "quant/sub_blocks.h"

namespace sluice {

void unpack_q3_k(const BlockQ3_K& block, int8_t* q) {
  unpack_two_bits(block.qs, q);
  for (size_t k = 0; k < 8; ++k)
    for (size_t i = 0; i < 32; ++i) {
      const int third_bit = (block.hmask[i] >> k) & 1;
      q[32 * k + i] = static_cast<int8_t>(q[32 * k + i] + 4 * third_bit - 4);
    }
}

void unpack_q3_k_scales(const uint8_t* packed, int8_t* scale) {
  for (size_t s = 0; s < kSuperBlock / 16; ++s) {
    const int low = (packed[s % 8] >> (4 * (s / 8))) & 15;
    const int high = (packed[8 + s % 4] >> (2 * (s / 4))) & 3;
    scale[s] = static_cast<int8_t>((low | (high << 4)) - 32);
  }
}

void decode_q3_k(const std::byte* blocks, size_t block_count, float* out) {
  for (size_t b = 0; b < block_count; ++b, out += kSuperBlock) {
    const auto block = load_block<BlockQ3_K>(blocks, b);
    int8_t scale[kSuperBlock / 16];
    int8_t q[kSuperBlock];
    unpack_q3_k_scales(block.scales, scale);
    unpack_q3_k(block, q);
    decode_scaled(block.d, scale, q, out);
  }
}

}  // namespace sluice
