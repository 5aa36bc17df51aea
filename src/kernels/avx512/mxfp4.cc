#include "kernels/avx512/avx512.h"
#include "kernels/avx512/fp4.h"
#include "kernels/avx512/row_small_block.h"

namespace sluice::kernels::avx512 {
namespace {

struct Mxfp4 {
  static constexpr size_t kBlockColumns = kSmallBlock;
  static constexpr size_t kBlockBytes = sizeof(BlockMXFP4);
  static constexpr int kOffset = kFp4Offset;
  static constexpr size_t kScaleColumns = kSmallBlock;
  static constexpr bool kHasMin = false;

  static inline void unpack_run(const PanelBlocks& blocks, size_t index, Run& run) {
    constexpr size_t kQs = offsetof(BlockMXFP4, qs);
    for (size_t b = 0; b < 2; ++b)
      load_half_bytes(blocks, (2 * index + b) * kBlockBytes + kQs, run + 8 * b);
    look_up(fp4_codes(), run);
  }

  static inline void load_scales(const PanelBlocks& blocks, size_t run, __m512 (&d)[2]) {
    for (size_t b = 0; b < 2; ++b)
      d[b] = half_of_e8m0(load_byte(blocks, (2 * run + b) * kBlockBytes));
  }
};

/// The exponents that blocks begin with, [block][row], two rows at once.
struct E8m0Scales {
  template <class Bytes>
  static inline void take(const Bytes (&rows)[kQuadRows], SmallScales& scales) {
    const auto at = [](size_t b) {
      return static_cast<long long>((Mxfp4::kBlockBytes * b) |
                                    ((64 + Mxfp4::kBlockBytes * b) << 32));
    };
    const __m512i order = _mm512_setr_epi64(at(0), at(0), at(1), at(1), at(2), at(2), at(3), at(3));
    const auto first_bytes = [&](size_t i) {  // of dwords
      return _mm512_maskz_permutex2var_epi8(0x1111111111111111, rows[i].first, order,
                                            rows[i + 1].first);
    };
    scales.d = half_of_e8m0(_mm512_mask_blend_epi32(0xcccc, first_bytes(0), first_bytes(2)));
  }
};

struct Mxfp4Rows {
  using Panels = SmallBlocks<Mxfp4>;
  using Scales = E8m0Scales;
  static constexpr int kOffset = Mxfp4::kOffset;
  static constexpr bool kHasMin = Mxfp4::kHasMin;
  static constexpr int kLargest = 12;
  static constexpr size_t kQs = offsetof(BlockMXFP4, qs);

  template <class Blocks>
  static inline void codes(const Blocks&, size_t, __m512i both, __m512i& low, __m512i& high) {
    look_up_halves(fp4_codes(), both, low, high);
  }
};

}  // namespace

void matvec_mxfp4(const MatmulArgs& args) {
  multiply_rows<RowSmallBlocks<HalvedFormat<Mxfp4Rows>>>(args);
}
void matmul_mxfp4(const MatmulArgs& args) {
  multiply_panels<SmallBlocks<Mxfp4>>(args);
}

}  // namespace sluice::kernels::avx512
