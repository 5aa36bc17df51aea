#include "kernels/neon/ternary.h"

#include "kernels/neon/neon.h"

namespace sluice::kernels::neon {

void matvec_tq1_0(const MatmulArgs& args) {
  matvec<PlainBlocks<TQ10, DotSums>>(args);
}
void matmul_tq1_0(const MatmulArgs& args) {
  matmul<PlainBlocks<TQ10, DotSums>>(args);
}
void matvec_tq2_0(const MatmulArgs& args) {
  matvec<PlainBlocks<TQ20, DotSums>>(args);
}
void matmul_tq2_0(const MatmulArgs& args) {
  matmul<PlainBlocks<TQ20, DotSums>>(args);
}

}  // namespace sluice::kernels::neon
