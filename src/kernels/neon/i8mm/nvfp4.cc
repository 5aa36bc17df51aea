#include "kernels/neon/nvfp4.h"

#include "kernels/neon/i8mm/i8mm.h"
#include "kernels/neon/i8mm/matrix_sums.h"

namespace sluice::kernels::i8mm {

void matmul_nvfp4(const MatmulArgs& args) {
  neon::matmul<neon::PlainBlocks<neon::Nvfp4, neon::MatrixSums>>(args);
}

}  // namespace sluice::kernels::i8mm
