#include "base/half.h"
#include "kernels/ref/matmul.h"
#include "kernels/ref/ref.h"

namespace sluice::kernels::ref {
namespace {

float add_block(const BlockQ8_0& block, const ActivationBlock& x, float acc) {
  return add_scaled(f16_to_f32(block.d), block.qs, x, kSmallBlock, acc);
}

}  // namespace

void matmul_q8_0(const MatmulArgs& args) {
  matmul_blocks<BlockQ8_0, ActivationFormat::q8_32, add_block>(args);
}

}  // namespace sluice::kernels::ref
