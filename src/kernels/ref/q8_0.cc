#include "base/half.h"
#include "kernels/ref/matmul.h"
#include "kernels/ref/ref.h"

namespace sluice::kernels::ref {
namespace {

float add_block(const BlockQ8_0& block, const ActivationBlock& x, float acc) {
  const int32_t sum = integer_dot(block.qs, x.q, kSmallBlock);
  return std::fma(f16_to_f32(block.d) * x.scale, static_cast<float>(sum), acc);
}

}  // namespace

void matmul_q8_0(const MatmulArgs& args) {
  matmul_blocks<BlockQ8_0, ActivationFormat::q8_32, add_block>(args);
}

}  // namespace sluice::kernels::ref
