#include "kernels/avx512/avx512.h"
#include "kernels/avx512/row_small_block.h"

namespace sluice::kernels::avx512 {
namespace {

struct Q40 {
  static constexpr size_t kBlockBytes = 18;
  static constexpr int kOffset = 8;

  static inline void unpack_run(const PanelBlocks& blocks, size_t index, Run& run) {
    constexpr size_t kQs = 2;  // offsetof(BlockQ4_0, qs)
    const __m512i low_half = _mm512_set1_epi8(15);
    for (size_t b = 0; b < 2; ++b) {
      __m512i packed[4];
      load_dwords(blocks, (2 * index + b) * kBlockBytes + kQs, packed);
      for (size_t i = 0; i < 4; ++i) {
        run[8 * b + i] = _mm512_and_si512(packed[i], low_half);
        run[8 * b + 4 + i] = _mm512_and_si512(_mm512_srli_epi32(packed[i], 4), low_half);
      }
    }
  }
};

struct Q40Rows : HalvedFormat<Q40Rows> {
  using Panels = SmallBlocks<Q40>;
  static constexpr int kOffset = Q40::kOffset;
  static constexpr size_t kQs = 2;  // offsetof(BlockQ4_0, qs)

  static inline void complete(const SmallBlockQuad&, size_t, __m512i&, __m512i&) {}
};

}  // namespace

void matvec_q4_0(const MatmulArgs& args) {
  multiply_rows<RowSmallBlocks<Q40Rows>>(args);
}
void matmul_q4_0(const MatmulArgs& args) {
  multiply_panels<SmallBlocks<Q40>>(args);
}

}  // namespace sluice::kernels::avx512
