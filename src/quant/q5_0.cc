#include "quant/decode.h"
#include "quant/encode.h"
#include "quant/rounding.h"
#include "quant/small_block.h"

namespace sluice {

constexpr size_t kHalf = kSmallBlock / 2;

void unpack_q5_0(const BlockQ5_0& block, int8_t* q) {
  unpack_half_bytes(block.qs, sizeof(block.qs), q);
  add_fifth_bits(block.qh, q);
  for (size_t i = 0; i < kSmallBlock; ++i) q[i] = static_cast<int8_t>(q[i] - 16);
}

void decode_q5_0(const std::byte* blocks, size_t block_count, float* out) {
  decode_scaled_codes<BlockQ5_0, kSmallBlock, unpack_q5_0>(blocks, block_count, out);
}

/// The value of largest magnitude becomes −16, whose range the positive side lacks.
void encode_q5_0(const float* x, size_t block_count, std::byte* blocks) {
  for (size_t b = 0; b < block_count; ++b, x += kSmallBlock) {
    BlockQ5_0 block = {};
    block.d = f32_to_f16(largest_magnitude(x, kSmallBlock) / -16.0f);
    const float d = f16_to_f32(block.d);
    for (size_t i = 0; i < kSmallBlock; ++i) {
      const int q = round_to_step(x[i], d, -16, 15) + 16;
      block.qs[i % kHalf] |= static_cast<uint8_t>((q & 15) << (i < kHalf ? 0 : 4));
      block.qh[i / 8] |= static_cast<uint8_t>((q >> 4) << (i % 8));
    }
    store_block(block, blocks, b);
  }
}

}  // namespace sluice
