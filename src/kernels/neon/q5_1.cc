#include "kernels/neon/q5_1.h"

#include "kernels/neon/neon.h"

namespace sluice::kernels::neon {

void matvec_q5_1(const MatmulArgs& args) {
  matvec<PlainBlocks<Q51, DotSums>>(args);
}
void matmul_q5_1(const MatmulArgs& args) {
  matmul<PlainBlocks<Q51, DotSums>>(args);
}

}  // namespace sluice::kernels::neon
