#include "kernels/ref/matmul.h"
#include "kernels/ref/ref.h"
#include "quant/fp4.h"

namespace sluice::kernels::ref {
namespace {

float add_block(const BlockMXFP4& block, const ActivationBlock& x, float acc) {
  int8_t q[kSmallBlock];
  unpack_mxfp4(block, q);
  return add_scaled(half_of_e8m0(block.e), q, x, kSmallBlock, acc);
}

}  // namespace

void matmul_mxfp4(const MatmulArgs& args) {
  matmul_blocks<BlockMXFP4, ActivationFormat::q8_32, add_block>(args);
}

}  // namespace sluice::kernels::ref
