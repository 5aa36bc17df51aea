#include "quant/blocks.h"
#include "quant/decode.h"
#include "quant/encode.h"
#include "quant/k_formats.h"

namespace sluice {

void unpack_q4_k(const BlockQ4_K& block, int8_t* q) {
  for (size_t pair = 0; pair < kKSubBlocks / 2; ++pair) {
    for (size_t i = 0; i < 32; ++i) {
      const uint8_t both = block.qs[32 * pair + i];
      q[64 * pair + i] = static_cast<int8_t>(both & 15);
      q[64 * pair + 32 + i] = static_cast<int8_t>(both >> 4);
    }
  }
}

void decode_q4_k(const std::byte* blocks, size_t block_count, float* out) {
  for (size_t b = 0; b < block_count; ++b) {
    const auto block = load_block<BlockQ4_K>(blocks, b);
    int8_t q[kSuperBlock];
    unpack_q4_k(block, q);
    decode_k_block(block.d, block.dmin, block.scales, q, out + b * kSuperBlock);
  }
}

void encode_q4_k(const float* x, size_t block_count, std::byte* blocks) {
  for (size_t b = 0; b < block_count; ++b) {
    const KEncoding code = encode_k_block(x + b * kSuperBlock, 15);
    BlockQ4_K block;
    block.d = code.d;
    block.dmin = code.dmin;
    std::memcpy(block.scales, code.packed_scales, sizeof(block.scales));
    for (size_t pair = 0; pair < kKSubBlocks / 2; ++pair)
      for (size_t i = 0; i < 32; ++i)
        block.qs[32 * pair + i] =
            static_cast<uint8_t>(code.q[64 * pair + i] | (code.q[64 * pair + 32 + i] << 4));
    store_block(block, blocks, b);
  }
}

}  // namespace sluice
