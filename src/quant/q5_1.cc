#include "quant/decode.h"
#include "quant/small_block.h"

namespace sluice {

void unpack_q5_1(const BlockQ5_1& block, int8_t* q) {
  unpack_half_bytes(block.qs, sizeof(block.qs), q);
  add_fifth_bits(block.qh, q);
}

void decode_q5_1(const std::byte* blocks, size_t block_count, float* out) {
  decode_scaled_codes<BlockQ5_1, kSmallBlock, unpack_q5_1>(blocks, block_count, out);
}

}  // namespace sluice
