#include "kernels/avx512/avx512.h"
#include "kernels/avx512/iq4_values.h"
#include "kernels/avx512/row_small_block.h"

namespace sluice::kernels::avx512 {
namespace {

struct IQ4NL : FourBits<BlockIQ4_NL> {
  static constexpr int kOffset = kIq4Offset;

  static inline void unpack_run(const PanelBlocks& blocks, size_t index, Run& run) {
    FourBits::unpack_run(blocks, index, run);
    look_up(iq4_codes(), run);
  }
};

struct IQ4NLRows {
  using Panels = SmallBlocks<IQ4NL>;
  using Scales = HalfScales<false>;
  static constexpr int kOffset = IQ4NL::kOffset;
  static constexpr bool kHasMin = IQ4NL::kHasMin;
  static constexpr int kLargest = 128;
  static constexpr size_t kQs = offsetof(BlockIQ4_NL, qs);

  template <class Blocks>
  static inline void codes(const Blocks&, size_t, __m512i both, __m512i& low, __m512i& high) {
    look_up_halves(iq4_codes(), both, low, high);
  }
};

}  // namespace

void matvec_iq4_nl(const MatmulArgs& args) {
  multiply_rows<RowSmallBlocks<HalvedFormat<IQ4NLRows>>>(args);
}
void matmul_iq4_nl(const MatmulArgs& args) {
  multiply_panels<SmallBlocks<IQ4NL>>(args);
}

}  // namespace sluice::kernels::avx512
