#include "kernels/avx512/avx512.h"
#include "kernels/avx512/row_small_block.h"

namespace sluice::kernels::avx512 {
namespace {

struct Q51 : FiveBits<BlockQ5_1> {
  static constexpr int kOffset = 0;
};

struct Q51Rows {
  using Panels = SmallBlocks<Q51>;
  using Scales = HalfScales<true>;
  static constexpr int kOffset = Q51::kOffset;
  static constexpr bool kHasMin = Q51::kHasMin;
  static constexpr size_t kQh = offsetof(BlockQ5_1, qh);
  static constexpr int kLargest = 31;
  static constexpr size_t kQs = offsetof(BlockQ5_1, qs);

  template <class Blocks>
  static inline void codes(const Blocks& blocks, size_t row, __m512i both, __m512i& low,
                           __m512i& high) {
    split_halves(both, low, high);
    add_fifth_bits<kQh>(blocks, row, low, high);
  }
};

}  // namespace

void matvec_q5_1(const MatmulArgs& args) {
  multiply_rows<RowSmallBlocks<HalvedFormat<Q51Rows>>>(args);
}
void matmul_q5_1(const MatmulArgs& args) {
  multiply_panels<SmallBlocks<Q51>>(args);
}

}  // namespace sluice::kernels::avx512
