#include "kernels/neon/nvfp4.h"

#include "kernels/neon/neon.h"

namespace sluice::kernels::neon {

void matvec_nvfp4(const MatmulArgs& args) {
  matvec<PlainBlocks<Nvfp4, DotSums>>(args);
}
void matmul_nvfp4(const MatmulArgs& args) {
  matmul<PlainBlocks<Nvfp4, DotSums>>(args);
}

}  // namespace sluice::kernels::neon
