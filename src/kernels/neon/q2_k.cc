#include "kernels/neon/q2_k.h"

#include "kernels/neon/neon.h"

namespace sluice::kernels::neon {

void matvec_q2_k(const MatmulArgs& args) {
  matvec<SuperBlocks<Q2K, DotSums>>(args);
}
void matmul_q2_k(const MatmulArgs& args) {
  matmul<SuperBlocks<Q2K, DotSums>>(args);
}

}  // namespace sluice::kernels::neon
