#include "kernels/neon/code_books.h"

#include "kernels/neon/i8mm/i8mm.h"
#include "kernels/neon/i8mm/matrix_sums.h"

namespace sluice::kernels::i8mm {

void matmul_iq2_xxs(const MatmulArgs& args) {
  neon::matmul<neon::CodeBookBlocks<BlockIQ2_XXS, neon::MatrixSums>>(args);
}
void matmul_iq2_xs(const MatmulArgs& args) {
  neon::matmul<neon::CodeBookBlocks<BlockIQ2_XS, neon::MatrixSums>>(args);
}
void matmul_iq3_xxs(const MatmulArgs& args) {
  neon::matmul<neon::CodeBookBlocks<BlockIQ3_XXS, neon::MatrixSums>>(args);
}
void matmul_iq1_s(const MatmulArgs& args) {
  neon::matmul<neon::CodeBookBlocks<BlockIQ1_S, neon::MatrixSums>>(args);
}
void matmul_iq3_s(const MatmulArgs& args) {
  neon::matmul<neon::CodeBookBlocks<BlockIQ3_S, neon::MatrixSums>>(args);
}
void matmul_iq2_s(const MatmulArgs& args) {
  neon::matmul<neon::CodeBookBlocks<BlockIQ2_S, neon::MatrixSums>>(args);
}
void matmul_iq1_m(const MatmulArgs& args) {
  neon::matmul<neon::CodeBookBlocks<BlockIQ1_M, neon::MatrixSums>>(args);
}

}  // namespace sluice::kernels::i8mm
