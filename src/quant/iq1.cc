#include "quant/code_book_entries.h"
#include "quant/decode.h"

namespace sluice {

CodedBlock unpack_coded(const BlockIQ1_S& block) {
  CodedBlock coded;
  for (size_t e = 0; e < 32; ++e) {
    const uint32_t word = load_word(block.qh + 2 * (e / 4));
    const uint32_t upper = (word >> (3 * (e % 4))) & 7;
    put_offset(kBookIq1.codes[block.qs[e] | (upper << 8)], word >> 15 != 0, coded.q + 8 * e);
    coded.scale[e / 2] = 2 * static_cast<int32_t>((word >> 12) & 7) + 1;
  }
  return coded;
}

CodedBlock unpack_coded(const BlockIQ1_M& block) {
  CodedBlock coded;
  for (size_t e = 0; e < 32; ++e) {
    const uint32_t upper = (block.qh[e / 2] >> (4 * (e % 2))) & 15;
    put_offset(kBookIq1.codes[block.qs[e] | ((upper & 7) << 8)], upper > 7, coded.q + 8 * e);
    const uint32_t word = load_word(block.scales + 2 * (e / 8));
    coded.scale[e / 2] = 2 * static_cast<int32_t>((word >> (3 * (e / 2 % 4))) & 7) + 1;
  }
  return coded;
}

void decode_iq1_s(const std::byte* blocks, size_t block_count, float* out) {
  decode_coded<BlockIQ1_S>(blocks, block_count, out);
}
void decode_iq1_m(const std::byte* blocks, size_t block_count, float* out) {
  decode_coded<BlockIQ1_M>(blocks, block_count, out);
}

}  // namespace sluice
