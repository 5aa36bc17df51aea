#include "kernels/neon/ternary.h"

#include "kernels/neon/i8mm/i8mm.h"
#include "kernels/neon/i8mm/matrix_sums.h"

namespace sluice::kernels::i8mm {

void matmul_tq1_0(const MatmulArgs& args) {
  neon::matmul<neon::PlainBlocks<neon::TQ10, neon::MatrixSums>>(args);
}
void matmul_tq2_0(const MatmulArgs& args) {
  neon::matmul<neon::PlainBlocks<neon::TQ20, neon::MatrixSums>>(args);
}

}  // namespace sluice::kernels::i8mm
