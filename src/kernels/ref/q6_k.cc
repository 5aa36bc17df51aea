#include "kernels/ref/ref.h"
#include "kernels/ref/sub_blocks.h"

namespace sluice::kernels::ref {
namespace {

float add_block(const BlockQ6_K& block, const ActivationBlock& x, float acc) {
  int8_t q[kSuperBlock];
  unpack_q6_k(block, q);
  return add_scaled(block.d, block.scales, q, x, acc);
}

}  // namespace

void matmul_q6_k(const MatmulArgs& args) {
  matmul_blocks<BlockQ6_K, ActivationFormat::q8_256, add_block>(args);
}

}  // namespace sluice::kernels::ref
