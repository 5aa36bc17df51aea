#include "kernels/neon/q5_k.h"

#include "kernels/neon/i8mm/i8mm.h"
#include "kernels/neon/i8mm/matrix_sums.h"

namespace sluice::kernels::i8mm {

void matmul_q5_k(const MatmulArgs& args) {
  neon::matmul<neon::SuperBlocks<neon::Q5K, neon::MatrixSums>>(args);
}

}  // namespace sluice::kernels::i8mm
