#include <cstring>

#include "base/half.h"
#include "quant/blocks.h"
#include "quant/decode.h"
#include "quant/encode.h"
#include "quant/rounding.h"

namespace sluice {

constexpr size_t kHalf = kSmallBlock / 2;

void unpack_q5_0(const BlockQ5_0& block, int8_t* q) {
  uint32_t high;
  std::memcpy(&high, block.qh, sizeof(high));
  for (size_t i = 0; i < kHalf; ++i) {
    const uint32_t first = (block.qs[i] & 15u) | ((high >> i & 1u) << 4);
    const uint32_t second = (block.qs[i] >> 4u) | ((high >> (kHalf + i) & 1u) << 4);
    q[i] = static_cast<int8_t>(static_cast<int>(first) - 16);
    q[kHalf + i] = static_cast<int8_t>(static_cast<int>(second) - 16);
  }
}

void decode_q5_0(const std::byte* blocks, size_t block_count, float* out) {
  for (size_t b = 0; b < block_count; ++b, out += kSmallBlock) {
    const auto block = load_block<BlockQ5_0>(blocks, b);
    const float d = f16_to_f32(block.d);
    int8_t q[kSmallBlock];
    unpack_q5_0(block, q);
    for (size_t i = 0; i < kSmallBlock; ++i) out[i] = d * static_cast<float>(q[i]);
  }
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
