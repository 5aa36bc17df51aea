#include "kernels/avx512/code_books.h"

#include "kernels/avx512/avx512.h"

namespace sluice::kernels::avx512 {

void matmul_iq2_xxs(const MatmulArgs& args) {
  multiply_panels<CodeBookBlocks<BlockIQ2_XXS>>(args);
}
void matmul_iq2_xs(const MatmulArgs& args) {
  multiply_panels<CodeBookBlocks<BlockIQ2_XS>>(args);
}
void matmul_iq3_xxs(const MatmulArgs& args) {
  multiply_panels<CodeBookBlocks<BlockIQ3_XXS>>(args);
}
void matmul_iq1_s(const MatmulArgs& args) {
  multiply_panels<CodeBookBlocks<BlockIQ1_S>>(args);
}
void matmul_iq3_s(const MatmulArgs& args) {
  multiply_panels<CodeBookBlocks<BlockIQ3_S>>(args);
}
void matmul_iq2_s(const MatmulArgs& args) {
  multiply_panels<CodeBookBlocks<BlockIQ2_S>>(args);
}
void matmul_iq1_m(const MatmulArgs& args) {
  multiply_panels<CodeBookBlocks<BlockIQ1_M>>(args);
}

}  // namespace sluice::kernels::avx512
