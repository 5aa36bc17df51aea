#include "kernels/avx2/avx2.h"
#include "kernels/avx2/signed_block.h"

namespace sluice::kernels::avx2 {
namespace {

struct Q80 {
  using Block = BlockQ8_0;

  static void weights(const std::byte* const* blocks, Codes& to) {
#pragma GCC unroll 2
    for (size_t piece = 0; piece < 2; ++piece) {
      const Pieces pieces = load_pieces(blocks, offsetof(Block, qs) + 16 * piece);
#pragma GCC unroll 2
      for (size_t half = 0; half < 2; ++half) {
        to.q[2 * piece][half] = pieces.bytes[0][half];
        to.q[2 * piece + 1][half] = pieces.bytes[1][half];
      }
    }
  }
};

}  // namespace

void matvec_q8_0(const MatmulArgs& args) {
  matvec<SignedBlocks<Q80>>(args);
}
void matmul_q8_0(const MatmulArgs& args) {
  matmul<SignedBlocks<Q80>>(args);
}

}  // namespace sluice::kernels::avx2
