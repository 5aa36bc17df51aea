#include "quant/decode.h"
#include "quant/iq4_values.h"
#include "quant/small_block.h"

namespace sluice {

void unpack_iq4_nl(const BlockIQ4_NL& block, int8_t* q) {
  unpack_half_bytes(block.qs, sizeof(block.qs), q);
  for (size_t i = 0; i < kSmallBlock; ++i) q[i] = kIq4Values[q[i]];
}

void decode_iq4_nl(const std::byte* blocks, size_t block_count, float* out) {
  decode_scaled_codes<BlockIQ4_NL, kSmallBlock, unpack_iq4_nl>(blocks, block_count, out);
}

}  // namespace sluice
