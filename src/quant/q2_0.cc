#include "quant/decode.h"
#include "quant/small_block.h"

namespace sluice {

void unpack_q2_0(const BlockQ2_0& block, int8_t* q) {
  for (size_t i = 0; i < BlockQ2_0::kElements; ++i)
    q[i] = static_cast<int8_t>((block.qs[i / 4] >> (2 * (i % 4)) & 3) - 1);
}

void decode_q2_0(const std::byte* blocks, size_t block_count, float* out) {
  decode_scaled_codes<BlockQ2_0, BlockQ2_0::kElements, unpack_q2_0>(blocks, block_count, out);
}

}  // namespace sluice
