#include "base/half.h"
#include "quant/code_fields.h"
#include "quant/decode.h"

namespace sluice {

template <class Block>
CodedBlock unpack_coded(const Block& block) {
  CodeFields fields;
  read_fields<Block>(reinterpret_cast<const std::byte*>(&block), fields);
  constexpr size_t kLength = sizeof(Block::kBook.codes[0]);
  CodedBlock coded;
  for (size_t i = 0; i < kSuperBlock; ++i) {
    const int code = Block::kBook.codes[fields.entries[i / kLength]][i % kLength];
    const int sign = (fields.signs[i / 8] >> (i % 8)) & 1 ? -1 : 1;
    coded.q[i] = static_cast<int8_t>(Block::kTraits.has_offsets ? 8 * code + sign : sign * code);
  }
  for (size_t s = 0; s < kSuperBlock / 16; ++s) coded.scale[s] = fields.scales[s];
  coded.d = fields.d;
  return coded;
}

template CodedBlock unpack_coded(const BlockIQ2_XXS&);
template CodedBlock unpack_coded(const BlockIQ2_XS&);
template CodedBlock unpack_coded(const BlockIQ3_XXS&);
template CodedBlock unpack_coded(const BlockIQ1_S&);
template CodedBlock unpack_coded(const BlockIQ3_S&);
template CodedBlock unpack_coded(const BlockIQ2_S&);
template CodedBlock unpack_coded(const BlockIQ1_M&);

namespace {

template <class Block>
void decode_coded(const std::byte* blocks, size_t block_count, float* out) {
  for (size_t b = 0; b < block_count; ++b, out += kSuperBlock) {
    const CodedBlock coded = unpack_coded(load_block<Block>(blocks, b));
    const float step = f16_to_f32(coded.d) * Block::kTraits.step;
    for (size_t i = 0; i < kSuperBlock; ++i)
      out[i] = step * static_cast<float>(coded.scale[i / 16] * coded.q[i]);
  }
}

}  // namespace

void decode_iq2_xxs(const std::byte* blocks, size_t block_count, float* out) {
  decode_coded<BlockIQ2_XXS>(blocks, block_count, out);
}
void decode_iq2_xs(const std::byte* blocks, size_t block_count, float* out) {
  decode_coded<BlockIQ2_XS>(blocks, block_count, out);
}
void decode_iq3_xxs(const std::byte* blocks, size_t block_count, float* out) {
  decode_coded<BlockIQ3_XXS>(blocks, block_count, out);
}
void decode_iq1_s(const std::byte* blocks, size_t block_count, float* out) {
  decode_coded<BlockIQ1_S>(blocks, block_count, out);
}
void decode_iq3_s(const std::byte* blocks, size_t block_count, float* out) {
  decode_coded<BlockIQ3_S>(blocks, block_count, out);
}
void decode_iq2_s(const std::byte* blocks, size_t block_count, float* out) {
  decode_coded<BlockIQ2_S>(blocks, block_count, out);
}
void decode_iq1_m(const std::byte* blocks, size_t block_count, float* out) {
  decode_coded<BlockIQ1_M>(blocks, block_count, out);
}

}  // namespace sluice
