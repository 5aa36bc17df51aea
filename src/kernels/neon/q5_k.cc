#include "kernels/neon/q5_k.h"

#include "kernels/neon/neon.h"

namespace sluice::kernels::neon {

void matvec_q5_k(const MatmulArgs& args) {
  matvec<SuperBlocks<Q5K, DotSums>>(args);
}
void matmul_q5_k(const MatmulArgs& args) {
  matmul<SuperBlocks<Q5K, DotSums>>(args);
}

}  // namespace sluice::kernels::neon
