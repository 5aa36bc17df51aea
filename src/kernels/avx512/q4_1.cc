#include "kernels/avx512/avx512.h"
#include "kernels/avx512/row_small_block.h"

namespace sluice::kernels::avx512 {
namespace {

struct Q41 : FourBits<BlockQ4_1> {
  static constexpr int kOffset = 0;
};

struct Q41Rows {
  using Panels = SmallBlocks<Q41>;
  using Scales = HalfScales<true>;
  static constexpr int kOffset = Q41::kOffset;
  static constexpr bool kHasMin = Q41::kHasMin;
  static constexpr int kLargest = 15;
  static constexpr size_t kQs = offsetof(BlockQ4_1, qs);

  template <class Blocks>
  static inline void codes(const Blocks&, size_t, __m512i both, __m512i& low, __m512i& high) {
    split_halves(both, low, high);
  }
};

}  // namespace

void matvec_q4_1(const MatmulArgs& args) {
  multiply_rows<RowSmallBlocks<HalvedFormat<Q41Rows>>>(args);
}
void matmul_q4_1(const MatmulArgs& args) {
  multiply_panels<SmallBlocks<Q41>>(args);
}

}  // namespace sluice::kernels::avx512
