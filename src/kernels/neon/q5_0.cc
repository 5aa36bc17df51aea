#include "kernels/neon/q5_0.h"

#include "kernels/neon/neon.h"

namespace sluice::kernels::neon {

void matvec_q5_0(const MatmulArgs& args) {
  matvec<PlainBlocks<Q50, DotSums>>(args);
}
void matmul_q5_0(const MatmulArgs& args) {
  matmul<PlainBlocks<Q50, DotSums>>(args);
}

}  // namespace sluice::kernels::neon
