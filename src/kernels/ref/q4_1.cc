#include "base/half.h"
#include "kernels/ref/matmul.h"
#include "kernels/ref/ref.h"

namespace sluice::kernels::ref {
namespace {

float add_block(const BlockQ4_1& block, const ActivationBlock& x, float acc) {
  int8_t q[kSmallBlock];
  unpack_q4_1(block, q);
  acc = add_scaled(f16_to_f32(block.d), q, x, kSmallBlock, acc);
  return add_offset(f16_to_f32(block.m), x, acc);
}

}  // namespace

void matmul_q4_1(const MatmulArgs& args) {
  matmul_blocks<BlockQ4_1, ActivationFormat::q8_32, add_block>(args);
}

}  // namespace sluice::kernels::ref
