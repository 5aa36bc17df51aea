#include "base/half.h"
#include "quant/blocks.h"
#include "quant/decode.h"
#include "quant/encode.h"
#include "quant/rounding.h"

namespace sluice {

void decode_q8_0(const std::byte* blocks, size_t block_count, float* out) {
  for (size_t b = 0; b < block_count; ++b, out += kSmallBlock) {
    const auto block = load_block<BlockQ8_0>(blocks, b);
    const float d = f16_to_f32(block.d);
    for (size_t i = 0; i < kSmallBlock; ++i) out[i] = d * static_cast<float>(block.qs[i]);
  }
}

void encode_q8_0(const float* x, size_t block_count, std::byte* blocks) {
  for (size_t b = 0; b < block_count; ++b, x += kSmallBlock) {
    BlockQ8_0 block;
    block.d = f32_to_f16(std::abs(largest_magnitude(x, kSmallBlock)) / 127.0f);
    const float d = f16_to_f32(block.d);
    for (size_t i = 0; i < kSmallBlock; ++i)
      block.qs[i] = static_cast<int8_t>(round_to_step(x[i], d, -127, 127));
    store_block(block, blocks, b);
  }
}

}  // namespace sluice
