#include "kernels/ref/ref.h"
#include "kernels/ref/sub_blocks.h"

namespace sluice::kernels::ref {
namespace {

float add_block(const BlockQ3_K& block, const ActivationBlock& x, float acc) {
  int8_t scale[kSuperBlock / 16];
  int8_t q[kSuperBlock];
  unpack_q3_k_scales(block.scales, scale);
  unpack_q3_k(block, q);
  return add_scaled(block.d, scale, q, x, acc);
}

}  // namespace

void matmul_q3_k(const MatmulArgs& args) {
  matmul_blocks<BlockQ3_K, ActivationFormat::q8_256, add_block>(args);
}

}  // namespace sluice::kernels::ref
