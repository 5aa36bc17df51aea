#include "base/half.h"
#include "kernels/ref/matmul.h"
#include "kernels/ref/ref.h"
#include "quant/code_book_blocks.h"

namespace sluice::kernels::ref {
namespace {

/// The step of all formats with code books.
template <class Block>
float add_coded(const Block& block, const ActivationBlock& x, float acc) {
  const CodedBlock coded = unpack_coded(block);
  int32_t sum = 0;
  for (size_t s = 0; s < kSuperBlock / 16; ++s)
    sum += coded.scale[s] * integer_dot(coded.q + 16 * s, x.q + 16 * s, 16);
  const float scale = f16_to_f32(coded.d) * Block::kTraits.step * x.scale;
  return std::fma(scale, static_cast<float>(sum), acc);
}

template <class Block>
void matmul_coded(const MatmulArgs& args) {
  matmul_blocks<Block, ActivationFormat::q8_256, add_coded<Block>>(args);
}

}  // namespace

void matmul_iq2_xxs(const MatmulArgs& args) {
  matmul_coded<BlockIQ2_XXS>(args);
}
void matmul_iq2_xs(const MatmulArgs& args) {
  matmul_coded<BlockIQ2_XS>(args);
}
void matmul_iq3_xxs(const MatmulArgs& args) {
  matmul_coded<BlockIQ3_XXS>(args);
}
void matmul_iq1_s(const MatmulArgs& args) {
  matmul_coded<BlockIQ1_S>(args);
}
void matmul_iq3_s(const MatmulArgs& args) {
  matmul_coded<BlockIQ3_S>(args);
}
void matmul_iq2_s(const MatmulArgs& args) {
  matmul_coded<BlockIQ2_S>(args);
}
void matmul_iq1_m(const MatmulArgs& args) {
  matmul_coded<BlockIQ1_M>(args);
}

}  // namespace sluice::kernels::ref
