#include "kernels/neon/q3_k.h"

#include "kernels/neon/neon.h"

namespace sluice::kernels::neon {

void matvec_q3_k(const MatmulArgs& args) {
  matvec<SuperBlocks<Q3K, DotSums>>(args);
}
void matmul_q3_k(const MatmulArgs& args) {
  matmul<SuperBlocks<Q3K, DotSums>>(args);
}

}  // namespace sluice::kernels::neon
