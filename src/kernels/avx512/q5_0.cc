#include "kernels/avx512/avx512.h"
#include "kernels/avx512/row_small_block.h"

namespace sluice::kernels::avx512 {
namespace {

struct Q50 : HalfScaled<32, 22> {
  static constexpr int kOffset = 16;

  static inline void unpack_run(const PanelBlocks& blocks, size_t index, Run& run) {
    constexpr size_t kQh = 2;  // offsetof(BlockQ5_0, qh)
    constexpr size_t kQs = 6;  // offsetof(BlockQ5_0, qs)
    for (size_t b = 0; b < 2; ++b) {
      const size_t block = (2 * index + b) * kBlockBytes;
      load_half_bytes(blocks, block + kQs, run + 8 * b);
      __m512i fifths[8];
      spread_bits(load_dword(blocks, block + kQh), 4, fifths);
      for (size_t i = 0; i < 8; ++i) run[8 * b + i] = _mm512_or_si512(run[8 * b + i], fifths[i]);
    }
  }
};

struct Q50Rows : HalvedFormat<Q50Rows> {
  using Panels = SmallBlocks<Q50>;
  static constexpr int kOffset = Q50::kOffset;
  static constexpr size_t kQh = 2;  // offsetof(BlockQ5_0, qh)
  static constexpr size_t kQs = 6;  // offsetof(BlockQ5_0, qs)

  /// Adds the fifth bits: of a block's 32 the lower 16 belong to the low halves.
  static inline void complete(const SmallBlockQuad& blocks, size_t row, __m512i& low,
                              __m512i& high) {
    uint64_t low_bits = 0;
    uint64_t high_bits = 0;
    for (size_t b = 0; b < kQuadBlocks; ++b) {
      uint16_t halves[2];
      std::memcpy(halves, blocks.at(row, b) + kQh, sizeof halves);
      low_bits |= uint64_t{halves[0]} << 16 * b;
      high_bits |= uint64_t{halves[1]} << 16 * b;
    }
    const __m512i bit_4 = _mm512_set1_epi8(16);
    low = _mm512_mask_add_epi8(low, low_bits, low, bit_4);
    high = _mm512_mask_add_epi8(high, high_bits, high, bit_4);
  }
};

}  // namespace

void matvec_q5_0(const MatmulArgs& args) {
  multiply_rows<RowSmallBlocks<Q50Rows>>(args);
}
void matmul_q5_0(const MatmulArgs& args) {
  multiply_panels<SmallBlocks<Q50>>(args);
}

}  // namespace sluice::kernels::avx512
