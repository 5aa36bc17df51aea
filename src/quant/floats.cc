// F32, F16 and BF16: blocks of one element.
#include "base/half.h"
#include "quant/blocks.h"
#include "quant/decode.h"
#include "quant/encode.h"

namespace sluice {
namespace {

template <class Element, float (*widen)(Element)>
void decode_elements(const std::byte* blocks, size_t count, float* out) {
  for (size_t i = 0; i < count; ++i) out[i] = widen(load_block<Element>(blocks, i));
}

template <class Element, Element (*narrow)(float)>
void encode_elements(const float* x, size_t count, std::byte* blocks) {
  for (size_t i = 0; i < count; ++i) store_block(narrow(x[i]), blocks, i);
}

}  // namespace

void decode_f32(const std::byte* blocks, size_t block_count, float* out) {
  std::memcpy(out, blocks, block_count * sizeof(float));
}

void decode_f16(const std::byte* blocks, size_t block_count, float* out) {
  decode_elements<uint16_t, f16_to_f32>(blocks, block_count, out);
}

void decode_bf16(const std::byte* blocks, size_t block_count, float* out) {
  decode_elements<uint16_t, bf16_to_f32>(blocks, block_count, out);
}

void encode_f32(const float* x, size_t block_count, std::byte* blocks) {
  std::memcpy(blocks, x, block_count * sizeof(float));
}

void encode_f16(const float* x, size_t block_count, std::byte* blocks) {
  encode_elements<uint16_t, f32_to_f16>(x, block_count, blocks);
}

void encode_bf16(const float* x, size_t block_count, std::byte* blocks) {
  encode_elements<uint16_t, f32_to_bf16>(x, block_count, blocks);
}

}  // namespace sluice
