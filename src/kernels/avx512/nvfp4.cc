#include "kernels/avx512/avx512.h"
#include "kernels/avx512/fp4.h"
#include "kernels/avx512/small_block.h"

namespace sluice::kernels::avx512 {
namespace {

struct Nvfp4 {
  static constexpr size_t kBlockColumns = BlockNVFP4::kElements;
  static constexpr size_t kBlockBytes = sizeof(BlockNVFP4);
  static constexpr int kOffset = kFp4Offset;
  static constexpr size_t kScaleColumns = BlockNVFP4::kSubBlock;
  static constexpr bool kHasMin = false;

  /// Low and high halves take turns: eight bytes are a sub-block.
  static inline void unpack_run(const PanelBlocks& blocks, size_t index, Run& run) {
    constexpr size_t kQs = offsetof(BlockNVFP4, qs);
    for (size_t b = 0; b < 2; ++b) {
      __m512i halves[8];
      load_half_bytes(blocks, index * kBlockBytes + kQs + 16 * b, halves);
      for (size_t i = 0; i < 8; ++i) run[8 * b + i] = halves[i / 4 * 2 + i / 2 % 2 * 4 + i % 2];
    }
    look_up(fp4_codes(), run);
  }

  static inline void load_scales(const PanelBlocks& blocks, size_t run, __m512 (&d)[4]) {
    for (size_t s = 0; s < 4; ++s) d[s] = half_of_e4m3(load_byte(blocks, run * kBlockBytes + s));
  }
};

}  // namespace

void matmul_nvfp4(const MatmulArgs& args) {
  multiply_panels<SmallBlocks<Nvfp4>>(args);
}

}  // namespace sluice::kernels::avx512
