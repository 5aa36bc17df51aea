#include "kernels/ref/matmul.h"
#include "kernels/ref/ref.h"
#include "quant/fp4.h"

namespace sluice::kernels::ref {
namespace {

constexpr size_t kSubBlock = BlockNVFP4::kSubBlock;
constexpr size_t kParts = BlockNVFP4::kElements / kSmallBlock;

float add_part(const BlockNVFP4& block, size_t part, const ActivationBlock& x, float acc) {
  int8_t q[BlockNVFP4::kElements];
  unpack_nvfp4(block, q);
  const int8_t* of_part = q + part * kSmallBlock;
  const uint8_t* scales = block.scales + part * (kSmallBlock / kSubBlock);
  for (size_t s = 0; s < kSmallBlock / kSubBlock; ++s) {
    const size_t first = s * kSubBlock;
    const ActivationBlock piece = {x.q + first, x.sum16 + first / 16, x.scale};
    acc = add_scaled(half_of_e4m3(scales[s]), of_part + first, piece, kSubBlock, acc);
  }
  return acc;
}

}  // namespace

void matmul_nvfp4(const MatmulArgs& args) {
  matmul_parts<BlockNVFP4, ActivationFormat::q8_32, kParts, add_part>(args);
}

}  // namespace sluice::kernels::ref
