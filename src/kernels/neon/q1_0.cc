#include "kernels/neon/q1_0.h"

#include "kernels/neon/neon.h"

namespace sluice::kernels::neon {

void matvec_q1_0(const MatmulArgs& args) {
  matvec<PlainBlocks<Q10, DotSums>>(args);
}
void matmul_q1_0(const MatmulArgs& args) {
  matmul<PlainBlocks<Q10, DotSums>>(args);
}

}  // namespace sluice::kernels::neon
