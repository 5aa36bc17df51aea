#include "kernels/neon/iq4_xs.h"

#include "kernels/neon/i8mm/i8mm.h"
#include "kernels/neon/i8mm/matrix_sums.h"

namespace sluice::kernels::i8mm {

void matmul_iq4_xs(const MatmulArgs& args) {
  neon::matmul<neon::SuperBlocks<neon::IQ4XS, neon::MatrixSums>>(args);
}

}  // namespace sluice::kernels::i8mm
