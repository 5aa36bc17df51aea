#include "kernels/ref/ref.h"
#include "kernels/ref/sub_blocks.h"

namespace sluice::kernels::ref {
namespace {

float add_block(const BlockQ4_K& block, const ActivationBlock& x, float acc) {
  const KScales scales = unpack_k_scales(block.scales);
  int8_t q[kSuperBlock];
  unpack_q4_k(block, q);
  acc = add_scaled(block.d, scales.scale, q, x, acc);
  return subtract_mins(block.dmin, scales.min, x, acc);
}

}  // namespace

void matmul_q4_k(const MatmulArgs& args) {
  matmul_blocks<BlockQ4_K, ActivationFormat::q8_256, add_block>(args);
}

}  // namespace sluice::kernels::ref
