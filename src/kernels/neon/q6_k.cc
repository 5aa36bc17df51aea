#include "kernels/neon/q6_k.h"

#include "kernels/neon/neon.h"

namespace sluice::kernels::neon {

void matvec_q6_k(const MatmulArgs& args) {
  matvec<SuperBlocks<Q6K, DotSums>>(args);
}
void matmul_q6_k(const MatmulArgs& args) {
  matmul<SuperBlocks<Q6K, DotSums>>(args);
}

}  // namespace sluice::kernels::neon
