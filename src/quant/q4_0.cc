#include "quant/decode.h"
#include "quant/encode.h"
#include "quant/rounding.h"
#include "quant/small_block.h"

namespace sluice {

constexpr size_t kHalf = kSmallBlock / 2;

void unpack_q4_0(const BlockQ4_0& block, int8_t* q) {
  unpack_half_bytes(block.qs, sizeof(block.qs), q);
  for (size_t i = 0; i < kSmallBlock; ++i) q[i] = static_cast<int8_t>(q[i] - 8);
}

void decode_q4_0(const std::byte* blocks, size_t block_count, float* out) {
  decode_scaled_codes<BlockQ4_0, kSmallBlock, unpack_q4_0>(blocks, block_count, out);
}

/// The value of largest magnitude becomes −8, whose range the positive side lacks.
void encode_q4_0(const float* x, size_t block_count, std::byte* blocks) {
  for (size_t b = 0; b < block_count; ++b, x += kSmallBlock) {
    BlockQ4_0 block;
    block.d = f32_to_f16(largest_magnitude(x, kSmallBlock) / -8.0f);
    const float d = f16_to_f32(block.d);
    for (size_t i = 0; i < kHalf; ++i) {
      const int low = round_to_step(x[i], d, -8, 7) + 8;
      const int high = round_to_step(x[kHalf + i], d, -8, 7) + 8;
      block.qs[i] = static_cast<uint8_t>(low | (high << 4));
    }
    store_block(block, blocks, b);
  }
}

}  // namespace sluice
