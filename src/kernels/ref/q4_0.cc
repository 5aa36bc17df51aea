#include "base/half.h"
#include "kernels/ref/matmul.h"
#include "kernels/ref/ref.h"

namespace sluice::kernels::ref {
namespace {

float add_block(const BlockQ4_0& block, const ActivationBlock& x, float acc) {
  int8_t q[kSmallBlock];
  unpack_q4_0(block, q);
  return add_scaled(f16_to_f32(block.d), q, x, kSmallBlock, acc);
}

}  // namespace

void matmul_q4_0(const MatmulArgs& args) {
  matmul_blocks<BlockQ4_0, ActivationFormat::q8_32, add_block>(args);
}

}  // namespace sluice::kernels::ref
