#include "kernels/neon/q4_1.h"

#include "kernels/neon/neon.h"

namespace sluice::kernels::neon {

void matvec_q4_1(const MatmulArgs& args) {
  matvec<PlainBlocks<Q41, DotSums>>(args);
}
void matmul_q4_1(const MatmulArgs& args) {
  matmul<PlainBlocks<Q41, DotSums>>(args);
}

}  // namespace sluice::kernels::neon
