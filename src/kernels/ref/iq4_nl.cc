#include "base/half.h"
#include "kernels/ref/matmul.h"
#include "kernels/ref/ref.h"

namespace sluice::kernels::ref {
namespace {

float add_block(const BlockIQ4_NL& block, const ActivationBlock& x, float acc) {
  int8_t q[kSmallBlock];
  unpack_iq4_nl(block, q);
  return add_scaled(f16_to_f32(block.d), q, x, kSmallBlock, acc);
}

}  // namespace

void matmul_iq4_nl(const MatmulArgs& args) {
  matmul_blocks<BlockIQ4_NL, ActivationFormat::q8_32, add_block>(args);
}

}  // namespace sluice::kernels::ref
