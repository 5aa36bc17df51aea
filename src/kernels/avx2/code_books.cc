#include "kernels/avx2/code_books.h"

#include "kernels/avx2/avx2.h"

namespace sluice::kernels::avx2 {

void matvec_iq2_xxs(const MatmulArgs& args) {
  matvec<CodeBookBlocks<BlockIQ2_XXS>>(args);
}
void matmul_iq2_xxs(const MatmulArgs& args) {
  matmul<CodeBookBlocks<BlockIQ2_XXS>>(args);
}
void matvec_iq2_xs(const MatmulArgs& args) {
  matvec<CodeBookBlocks<BlockIQ2_XS>>(args);
}
void matmul_iq2_xs(const MatmulArgs& args) {
  matmul<CodeBookBlocks<BlockIQ2_XS>>(args);
}
void matvec_iq3_xxs(const MatmulArgs& args) {
  matvec<CodeBookBlocks<BlockIQ3_XXS>>(args);
}
void matmul_iq3_xxs(const MatmulArgs& args) {
  matmul<CodeBookBlocks<BlockIQ3_XXS>>(args);
}
void matvec_iq1_s(const MatmulArgs& args) {
  matvec<CodeBookBlocks<BlockIQ1_S>>(args);
}
void matmul_iq1_s(const MatmulArgs& args) {
  matmul<CodeBookBlocks<BlockIQ1_S>>(args);
}
void matvec_iq3_s(const MatmulArgs& args) {
  matvec<CodeBookBlocks<BlockIQ3_S>>(args);
}
void matmul_iq3_s(const MatmulArgs& args) {
  matmul<CodeBookBlocks<BlockIQ3_S>>(args);
}
void matvec_iq2_s(const MatmulArgs& args) {
  matvec<CodeBookBlocks<BlockIQ2_S>>(args);
}
void matmul_iq2_s(const MatmulArgs& args) {
  matmul<CodeBookBlocks<BlockIQ2_S>>(args);
}
void matvec_iq1_m(const MatmulArgs& args) {
  matvec<CodeBookBlocks<BlockIQ1_M>>(args);
}
void matmul_iq1_m(const MatmulArgs& args) {
  matmul<CodeBookBlocks<BlockIQ1_M>>(args);
}

}  // namespace sluice::kernels::avx2
