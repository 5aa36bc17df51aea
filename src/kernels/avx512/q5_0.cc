#include "kernels/avx512/avx512.h"
#include "kernels/avx512/row_small_block.h"

namespace sluice::kernels::avx512 {
namespace {

struct Q50 : FiveBits<BlockQ5_0> {
  static constexpr int kOffset = 16;
};

struct Q50Rows {
  using Panels = SmallBlocks<Q50>;
  using Scales = HalfScales<false>;
  static constexpr int kOffset = Q50::kOffset;
  static constexpr bool kHasMin = Q50::kHasMin;
  static constexpr size_t kQh = offsetof(BlockQ5_0, qh);
  static constexpr int kLargest = 16;
  static constexpr size_t kQs = offsetof(BlockQ5_0, qs);

  template <class Blocks>
  static inline void codes(const Blocks& blocks, size_t row, __m512i both, __m512i& low,
                           __m512i& high) {
    split_halves(both, low, high);
    add_fifth_bits<kQh>(blocks, row, low, high);
  }
};

}  // namespace

void matvec_q5_0(const MatmulArgs& args) {
  multiply_rows<RowSmallBlocks<HalvedFormat<Q50Rows>>>(args);
}
void matmul_q5_0(const MatmulArgs& args) {
  multiply_panels<SmallBlocks<Q50>>(args);
}

}  // namespace sluice::kernels::avx512
