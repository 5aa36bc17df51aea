#include "kernels/ref/k_formats.h"
#include "kernels/ref/matmul.h"
#include "kernels/ref/ref.h"

namespace sluice::kernels::ref {
namespace {

float add_block(const BlockQ4_K& block, const ActivationBlock& x, float acc) {
  int8_t q[kSuperBlock];
  unpack_q4_k(block, q);
  return add_scaled_and_min(block, q, x, acc);
}

}  // namespace

void matmul_q4_k(const MatmulArgs& args) {
  matmul_blocks<BlockQ4_K, ActivationFormat::q8_256, add_block>(args);
}

}  // namespace sluice::kernels::ref
