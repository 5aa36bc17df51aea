#include "kernels/neon/q3_k.h"

#include "kernels/neon/i8mm/i8mm.h"
#include "kernels/neon/i8mm/matrix_sums.h"

namespace sluice::kernels::i8mm {

void matmul_q3_k(const MatmulArgs& args) {
  neon::matmul<neon::SuperBlocks<neon::Q3K, neon::MatrixSums>>(args);
}

}  // namespace sluice::kernels::i8mm
