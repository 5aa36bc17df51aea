#include "kernels/avx512/avx512.h"
#include "kernels/avx512/row_small_block.h"

namespace sluice::kernels::avx512 {
namespace {

struct Q40 : FourBits<BlockQ4_0> {
  static constexpr int kOffset = 8;
};

struct Q40Rows {
  using Panels = SmallBlocks<Q40>;
  using Scales = HalfScales<false>;
  static constexpr int kOffset = Q40::kOffset;
  static constexpr bool kHasMin = Q40::kHasMin;
  static constexpr int kLargest = 8;
  static constexpr size_t kQs = offsetof(BlockQ4_0, qs);

  template <class Blocks>
  static inline void codes(const Blocks&, size_t, __m512i both, __m512i& low, __m512i& high) {
    split_halves(both, low, high);
  }
};

}  // namespace

void matvec_q4_0(const MatmulArgs& args) {
  multiply_rows<RowSmallBlocks<HalvedFormat<Q40Rows>>>(args);
}
void matmul_q4_0(const MatmulArgs& args) {
  multiply_panels<SmallBlocks<Q40>>(args);
}

}  // namespace sluice::kernels::avx512
