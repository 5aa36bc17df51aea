#include "kernels/neon/q2_0.h"

#include "kernels/neon/neon.h"

namespace sluice::kernels::neon {

void matvec_q2_0(const MatmulArgs& args) {
  matvec<PlainBlocks<Q20, DotSums>>(args);
}
void matmul_q2_0(const MatmulArgs& args) {
  matmul<PlainBlocks<Q20, DotSums>>(args);
}

}  // namespace sluice::kernels::neon
