#include "base/half.h"
#include "kernels/ref/matmul.h"
#include "kernels/ref/ref.h"

namespace sluice::kernels::ref {
namespace {

constexpr size_t kParts = BlockQ2_0::kElements / kSmallBlock;

float add_part(const BlockQ2_0& block, size_t part, const ActivationBlock& x, float acc) {
  int8_t q[BlockQ2_0::kElements];
  unpack_q2_0(block, q);
  return add_scaled(f16_to_f32(block.d), q + part * kSmallBlock, x, kSmallBlock, acc);
}

}  // namespace

void matmul_q2_0(const MatmulArgs& args) {
  matmul_parts<BlockQ2_0, ActivationFormat::q8_32, kParts, add_part>(args);
}

}  // namespace sluice::kernels::ref
