#include "kernels/neon/mxfp4.h"

#include "kernels/neon/neon.h"

namespace sluice::kernels::neon {

void matvec_mxfp4(const MatmulArgs& args) {
  matvec<PlainBlocks<Mxfp4, DotSums>>(args);
}
void matmul_mxfp4(const MatmulArgs& args) {
  matmul<PlainBlocks<Mxfp4, DotSums>>(args);
}

}  // namespace sluice::kernels::neon
