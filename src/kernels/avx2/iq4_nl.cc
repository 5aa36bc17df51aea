#include "kernels/avx2/avx2.h"
#include "kernels/avx2/iq4_values.h"
#include "kernels/avx2/signed_block.h"

namespace sluice::kernels::avx2 {
namespace {

struct IQ4NL {
  using Block = BlockIQ4_NL;

  static void weights(const std::byte* const* blocks, Codes& to) {
    half_bytes(blocks, offsetof(Block, qs), to);
    look_up(iq4_values(), to);
  }
};

}  // namespace

void matvec_iq4_nl(const MatmulArgs& args) {
  matvec<SignedBlocks<IQ4NL>>(args);
}
void matmul_iq4_nl(const MatmulArgs& args) {
  matmul<SignedBlocks<IQ4NL>>(args);
}

}  // namespace sluice::kernels::avx2
