#include "kernels/ref/ref.h"
#include "kernels/ref/sub_blocks.h"

namespace sluice::kernels::ref {
namespace {

float add_block(const BlockIQ4_XS& block, const ActivationBlock& x, float acc) {
  int8_t scale[kSuperBlock / 32];
  int8_t q[kSuperBlock];
  unpack_iq4_xs_scales(block, scale);
  unpack_iq4_xs(block, q);
  return add_scaled(block.d, scale, q, x, acc);
}

}  // namespace

void matmul_iq4_xs(const MatmulArgs& args) {
  matmul_blocks<BlockIQ4_XS, ActivationFormat::q8_256, add_block>(args);
}

}  // namespace sluice::kernels::ref
