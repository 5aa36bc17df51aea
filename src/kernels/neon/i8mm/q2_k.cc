#include "kernels/neon/q2_k.h"

#include "kernels/neon/i8mm/i8mm.h"
#include "kernels/neon/i8mm/matrix_sums.h"

namespace sluice::kernels::i8mm {

void matmul_q2_k(const MatmulArgs& args) {
  neon::matmul<neon::SuperBlocks<neon::Q2K, neon::MatrixSums>>(args);
}

}  // namespace sluice::kernels::i8mm
