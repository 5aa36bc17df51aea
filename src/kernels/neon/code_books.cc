#include "kernels/neon/code_books.h"

#include "kernels/neon/neon.h"

namespace sluice::kernels::neon {

void matvec_iq2_xxs(const MatmulArgs& args) {
  matvec<CodeBookBlocks<BlockIQ2_XXS, DotSums>>(args);
}
void matmul_iq2_xxs(const MatmulArgs& args) {
  matmul<CodeBookBlocks<BlockIQ2_XXS, DotSums>>(args);
}
void matvec_iq2_xs(const MatmulArgs& args) {
  matvec<CodeBookBlocks<BlockIQ2_XS, DotSums>>(args);
}
void matmul_iq2_xs(const MatmulArgs& args) {
  matmul<CodeBookBlocks<BlockIQ2_XS, DotSums>>(args);
}
void matvec_iq3_xxs(const MatmulArgs& args) {
  matvec<CodeBookBlocks<BlockIQ3_XXS, DotSums>>(args);
}
void matmul_iq3_xxs(const MatmulArgs& args) {
  matmul<CodeBookBlocks<BlockIQ3_XXS, DotSums>>(args);
}
void matvec_iq1_s(const MatmulArgs& args) {
  matvec<CodeBookBlocks<BlockIQ1_S, DotSums>>(args);
}
void matmul_iq1_s(const MatmulArgs& args) {
  matmul<CodeBookBlocks<BlockIQ1_S, DotSums>>(args);
}
void matvec_iq3_s(const MatmulArgs& args) {
  matvec<CodeBookBlocks<BlockIQ3_S, DotSums>>(args);
}
void matmul_iq3_s(const MatmulArgs& args) {
  matmul<CodeBookBlocks<BlockIQ3_S, DotSums>>(args);
}
void matvec_iq2_s(const MatmulArgs& args) {
  matvec<CodeBookBlocks<BlockIQ2_S, DotSums>>(args);
}
void matmul_iq2_s(const MatmulArgs& args) {
  matmul<CodeBookBlocks<BlockIQ2_S, DotSums>>(args);
}
void matvec_iq1_m(const MatmulArgs& args) {
  matvec<CodeBookBlocks<BlockIQ1_M, DotSums>>(args);
}
void matmul_iq1_m(const MatmulArgs& args) {
  matmul<CodeBookBlocks<BlockIQ1_M, DotSums>>(args);
}

}  // namespace sluice::kernels::neon
