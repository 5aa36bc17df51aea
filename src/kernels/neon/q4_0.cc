#include "kernels/neon/q4_0.h"

#include "kernels/neon/neon.h"

namespace sluice::kernels::neon {

void matvec_q4_0(const MatmulArgs& args) {
  matvec<PlainBlocks<Q40, DotSums>>(args);
}
void matmul_q4_0(const MatmulArgs& args) {
  matmul<PlainBlocks<Q40, DotSums>>(args);
}

}  // namespace sluice::kernels::neon
