#include "quant/decode.h"
#include "quant/fp4.h"
#include "quant/small_block.h"

namespace sluice {
namespace {

constexpr size_t kSubBlock = BlockNVFP4::kSubBlock;

}  // namespace

void unpack_nvfp4(const BlockNVFP4& block, int8_t* q) {
  for (size_t i = 0; i < BlockNVFP4::kElements; i += kSubBlock)
    unpack_half_bytes(block.qs + i / 2, kSubBlock / 2, q + i);
  for (size_t i = 0; i < BlockNVFP4::kElements; ++i) q[i] = kTwiceE2m1[q[i]];
}

void decode_nvfp4(const std::byte* blocks, size_t block_count, float* out) {
  for (size_t b = 0; b < block_count; ++b, out += BlockNVFP4::kElements) {
    const auto block = load_block<BlockNVFP4>(blocks, b);
    int8_t q[BlockNVFP4::kElements];
    unpack_nvfp4(block, q);
    for (size_t i = 0; i < BlockNVFP4::kElements; ++i)
      out[i] = half_of_e4m3(block.scales[i / kSubBlock]) * static_cast<float>(q[i]);
  }
}

}  // namespace sluice
