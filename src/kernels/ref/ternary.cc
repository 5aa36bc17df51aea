// TQ1_0 and TQ2_0: one sum per block.
#include "base/half.h"
#include "kernels/ref/matmul.h"
#include "kernels/ref/ref.h"

namespace sluice::kernels::ref {
namespace {

template <class Block, void (*unpack)(const Block&, int8_t*)>
float add_block(const Block& block, const ActivationBlock& x, float acc) {
  int8_t q[kSuperBlock];
  unpack(block, q);
  const int32_t sum = integer_dot(q, x.q, kSuperBlock);
  return std::fma(f16_to_f32(block.d) * x.scale, static_cast<float>(sum), acc);
}

}  // namespace

void matmul_tq1_0(const MatmulArgs& args) {
  constexpr auto kAddBlock = add_block<BlockTQ1_0, unpack_tq1_0>;
  matmul_blocks<BlockTQ1_0, ActivationFormat::q8_256, kAddBlock>(args);
}

void matmul_tq2_0(const MatmulArgs& args) {
  constexpr auto kAddBlock = add_block<BlockTQ2_0, unpack_tq2_0>;
  matmul_blocks<BlockTQ2_0, ActivationFormat::q8_256, kAddBlock>(args);
}

}  // namespace sluice::kernels::ref
