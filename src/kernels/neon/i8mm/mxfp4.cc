#include "kernels/neon/mxfp4.h"

#include "kernels/neon/i8mm/i8mm.h"
#include "kernels/neon/i8mm/matrix_sums.h"

namespace sluice::kernels::i8mm {

void matmul_mxfp4(const MatmulArgs& args) {
  neon::matmul<neon::PlainBlocks<neon::Mxfp4, neon::MatrixSums>>(args);
}

}  // namespace sluice::kernels::i8mm
