#include "base/half.h"
#include "kernels/ref/matmul.h"
#include "kernels/ref/ref.h"

namespace sluice::kernels::ref {
namespace {

float add_block(const BlockQ5_0& block, const ActivationBlock& x, float acc) {
  int8_t q[kSmallBlock];
  unpack_q5_0(block, q);
  const int32_t sum = integer_dot(q, x.q, kSmallBlock);
  return std::fma(f16_to_f32(block.d) * x.scale, static_cast<float>(sum), acc);
}

}  // namespace

void matmul_q5_0(const MatmulArgs& args) {
  matmul_blocks<BlockQ5_0, ActivationFormat::q8_32, add_block>(args);
}

}  // namespace sluice::kernels::ref
