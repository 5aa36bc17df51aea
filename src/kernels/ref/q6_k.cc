#include "base/half.h"
#include "kernels/ref/matmul.h"
#include "kernels/ref/ref.h"

namespace sluice::kernels::ref {
namespace {

float add_block(const BlockQ6_K& block, const ActivationBlock& x, float acc) {
  int8_t q[kSuperBlock];
  unpack_q6_k(block, q);
  int32_t sum = 0;
  for (size_t s = 0; s < kSuperBlock / 16; ++s)
    sum += block.scales[s] * integer_dot(q + 16 * s, x.q + 16 * s, 16);
  return std::fma(f16_to_f32(block.d) * x.scale, static_cast<float>(sum), acc);
}

}  // namespace

void matmul_q6_k(const MatmulArgs& args) {
  matmul_blocks<BlockQ6_K, ActivationFormat::q8_256, add_block>(args);
}

}  // namespace sluice::kernels::ref
