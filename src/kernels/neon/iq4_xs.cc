#include "kernels/neon/iq4_xs.h"

#include "kernels/neon/neon.h"

namespace sluice::kernels::neon {

void matvec_iq4_xs(const MatmulArgs& args) {
  matvec<SuperBlocks<IQ4XS, DotSums>>(args);
}
void matmul_iq4_xs(const MatmulArgs& args) {
  matmul<SuperBlocks<IQ4XS, DotSums>>(args);
}

}  // namespace sluice::kernels::neon
