#include "quant/blocks.h"
#include "quant/decode.h"
#include "quant/encode.h"
#include "quant/k_formats.h"

namespace sluice {

void unpack_q5_k(const BlockQ5_K& block, int8_t* q) {
  for (size_t s = 0; s < kKSubBlocks; ++s) {
    for (size_t i = 0; i < 32; ++i) {
      const uint8_t both = block.qs[32 * (s / 2) + i];
      const int low = s % 2 == 0 ? both & 15 : both >> 4;
      const int fifth = (block.qh[i] >> s) & 1;
      q[32 * s + i] = static_cast<int8_t>(low | (fifth << 4));
    }
  }
}

void decode_q5_k(const std::byte* blocks, size_t block_count, float* out) {
  for (size_t b = 0; b < block_count; ++b) {
    const auto block = load_block<BlockQ5_K>(blocks, b);
    int8_t q[kSuperBlock];
    unpack_q5_k(block, q);
    decode_k_block(block.d, block.dmin, block.scales, q, out + b * kSuperBlock);
  }
}

void encode_q5_k(const float* x, size_t block_count, std::byte* blocks) {
  for (size_t b = 0; b < block_count; ++b) {
    const KEncoding code = encode_k_block(x + b * kSuperBlock, 31);
    BlockQ5_K block = {};
    block.d = code.d;
    block.dmin = code.dmin;
    std::memcpy(block.scales, code.packed_scales, sizeof(block.scales));
    for (size_t s = 0; s < kKSubBlocks; ++s) {
      for (size_t i = 0; i < 32; ++i) {
        const uint8_t q = code.q[32 * s + i];
        block.qs[32 * (s / 2) + i] |= static_cast<uint8_t>((q & 15) << (s % 2 * 4));
        block.qh[i] |= static_cast<uint8_t>((q >> 4) << s);
      }
    }
    store_block(block, blocks, b);
  }
}

}  // namespace sluice
