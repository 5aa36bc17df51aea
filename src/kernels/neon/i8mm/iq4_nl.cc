#include "kernels/neon/iq4_nl.h"

#include "kernels/neon/i8mm/i8mm.h"
#include "kernels/neon/i8mm/matrix_sums.h"

namespace sluice::kernels::i8mm {

void matmul_iq4_nl(const MatmulArgs& args) {
  neon::matmul<neon::PlainBlocks<neon::IQ4NL, neon::MatrixSums>>(args);
}

}  // namespace sluice::kernels::i8mm
