#include "kernels/avx512/avx512.h"
#include "kernels/avx512/fp4.h"
#include "kernels/avx512/small_block.h"

namespace sluice::kernels::avx512 {
namespace {

struct Mxfp4 {
  static constexpr size_t kBlockColumns = kSmallBlock;
  static constexpr size_t kBlockBytes = 17;
  static constexpr int kOffset = kFp4Offset;
  static constexpr size_t kScaleColumns = kSmallBlock;
  static constexpr bool kHasMin = false;

  static inline void unpack_run(const PanelBlocks& blocks, size_t index, Run& run) {
    constexpr size_t kQs = 1;  // offsetof(BlockMXFP4, qs)
    for (size_t b = 0; b < 2; ++b)
      load_half_bytes(blocks, (2 * index + b) * kBlockBytes + kQs, run + 8 * b);
    look_up(fp4_codes(), run);
  }

  static inline void load_scales(const PanelBlocks& blocks, size_t run, __m512 (&d)[2]) {
    for (size_t b = 0; b < 2; ++b)
      d[b] = half_of_e8m0(load_byte(blocks, (2 * run + b) * kBlockBytes));
  }
};

}  // namespace

void matmul_mxfp4(const MatmulArgs& args) {
  multiply_panels<SmallBlocks<Mxfp4>>(args);
}

}  // namespace sluice::kernels::avx512
