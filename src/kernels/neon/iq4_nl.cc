#include "kernels/neon/iq4_nl.h"

#include "kernels/neon/neon.h"

namespace sluice::kernels::neon {

void matvec_iq4_nl(const MatmulArgs& args) {
  matvec<PlainBlocks<IQ4NL, DotSums>>(args);
}
void matmul_iq4_nl(const MatmulArgs& args) {
  matmul<PlainBlocks<IQ4NL, DotSums>>(args);
}

}  // namespace sluice::kernels::neon
