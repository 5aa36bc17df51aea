#include "quant/decode.h"
#include "quant/small_block.h"

namespace sluice {

void unpack_q1_0(const BlockQ1_0& block, int8_t* q) {
  for (size_t i = 0; i < BlockQ1_0::kElements; ++i)
    q[i] = (block.qs[i / 8] >> (i % 8) & 1) != 0 ? 1 : -1;
}

void decode_q1_0(const std::byte* blocks, size_t block_count, float* out) {
  decode_scaled_codes<BlockQ1_0, BlockQ1_0::kElements, unpack_q1_0>(blocks, block_count, out);
}

}  // namespace sluice
