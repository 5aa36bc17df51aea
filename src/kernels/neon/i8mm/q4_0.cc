#include "kernels/neon/q4_0.h"

#include "kernels/neon/i8mm/i8mm.h"
#include "kernels/neon/i8mm/matrix_sums.h"

namespace sluice::kernels::i8mm {

void matmul_q4_0(const MatmulArgs& args) {
  neon::matmul<neon::PlainBlocks<neon::Q40, neon::MatrixSums>>(args);
}

}  // namespace sluice::kernels::i8mm
