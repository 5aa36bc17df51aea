#include "quant/code_book_entries.h"
#include "quant/decode.h"

namespace sluice {

CodedBlock unpack_coded(const BlockIQ2_XXS& block) {
  CodedBlock coded;
  for (size_t e = 0; e < 32; ++e) {
    const uint8_t* group = block.qs + 8 * (e / 4);
    const uint32_t word = load_double_word(group + 4);
    put_signed(kBookIq2Xxs.codes[group[e % 4]], even_signs(word >> (7 * (e % 4))), coded.q + 8 * e);
    coded.scale[e / 2] = 2 * static_cast<int32_t>(word >> 28) + 1;
  }
  return coded;
}

CodedBlock unpack_coded(const BlockIQ2_XS& block) {
  CodedBlock coded;
  for (size_t e = 0; e < 32; ++e) {
    const uint32_t word = load_word(block.qs + 2 * e);
    put_signed(kBookIq2Xs.codes[word & 511], even_signs(word >> 9), coded.q + 8 * e);
    coded.scale[e / 2] = odd_scale(block.scales, e / 2);
  }
  return coded;
}

CodedBlock unpack_coded(const BlockIQ2_S& block) {
  CodedBlock coded;
  for (size_t e = 0; e < 32; ++e) {
    const uint32_t upper = (block.qh[e / 4] >> (2 * (e % 4))) & 3;
    put_signed(kBookIq2S.codes[block.qs[e] | (upper << 8)], block.signs[e], coded.q + 8 * e);
    coded.scale[e / 2] = odd_scale(block.scales, e / 2);
  }
  return coded;
}

void decode_iq2_xxs(const std::byte* blocks, size_t block_count, float* out) {
  decode_coded<BlockIQ2_XXS>(blocks, block_count, out);
}
void decode_iq2_xs(const std::byte* blocks, size_t block_count, float* out) {
  decode_coded<BlockIQ2_XS>(blocks, block_count, out);
}
void decode_iq2_s(const std::byte* blocks, size_t block_count, float* out) {
  decode_coded<BlockIQ2_S>(blocks, block_count, out);
}

}  // namespace sluice
