#include "kernels/neon/q4_k.h"

#include "kernels/neon/neon.h"

namespace sluice::kernels::neon {

void matvec_q4_k(const MatmulArgs& args) {
  matvec<SuperBlocks<Q4K, DotSums>>(args);
}
void matmul_q4_k(const MatmulArgs& args) {
  matmul<SuperBlocks<Q4K, DotSums>>(args);
}

}  // namespace sluice::kernels::neon
