#include "kernels/neon/q8_0.h"

#include "kernels/neon/neon.h"

namespace sluice::kernels::neon {

void matvec_q8_0(const MatmulArgs& args) {
  matvec<PlainBlocks<Q80, DotSums>>(args);
}
void matmul_q8_0(const MatmulArgs& args) {
  matmul<PlainBlocks<Q80, DotSums>>(args);
}

}  // namespace sluice::kernels::neon
