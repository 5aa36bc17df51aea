#include "quant/code_book_entries.h"
#include "quant/decode.h"

namespace sluice {

CodedBlock unpack_coded(const BlockIQ3_XXS& block) {
  CodedBlock coded;
  for (size_t pair = 0; pair < 32; ++pair) {
    const uint32_t word = load_double_word(block.signs_and_scales + 4 * (pair / 4));
    const uint8_t* entries = block.qs + 2 * pair;
    put_signed(kBookIq3Xxs.codes[entries[0]], kBookIq3Xxs.codes[entries[1]],
               even_signs(word >> (7 * (pair % 4))), coded.q + 8 * pair);
    coded.scale[pair / 2] = 2 * static_cast<int32_t>(word >> 28) + 1;
  }
  return coded;
}

CodedBlock unpack_coded(const BlockIQ3_S& block) {
  const auto codes = [&](size_t e) -> const int8_t(&)[4] {
    const uint32_t upper = (block.qh[e / 8] >> (e % 8)) & 1;
    return kBookIq3S.codes[block.qs[e] | (upper << 8)];
  };
  CodedBlock coded;
  for (size_t pair = 0; pair < 32; ++pair) {
    put_signed(codes(2 * pair), codes(2 * pair + 1), block.signs[pair], coded.q + 8 * pair);
    coded.scale[pair / 2] = odd_scale(block.scales, pair / 4);
  }
  return coded;
}

void decode_iq3_xxs(const std::byte* blocks, size_t block_count, float* out) {
  decode_coded<BlockIQ3_XXS>(blocks, block_count, out);
}
void decode_iq3_s(const std::byte* blocks, size_t block_count, float* out) {
  decode_coded<BlockIQ3_S>(blocks, block_count, out);
}

}  // namespace sluice
