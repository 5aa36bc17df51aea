#include "kernels/avx512/avx512.h"
#include "kernels/avx512/row_small_block.h"

namespace sluice::kernels::avx512 {
namespace {

/// The fifth bits of a block's 32 columns, bit i for column i, of each row.
inline __m512i load_fifth_bits(const PanelBlocks& blocks, size_t offset) {
  alignas(64) uint32_t bits[kPanelRows];
  for (size_t r = 0; r < kPanelRows; ++r)
    std::memcpy(bits + r, blocks.first + offset + r * blocks.row_bytes, sizeof bits[r]);
  return _mm512_load_si512(bits);
}

/// The lowest four bits of each lane, one in bit 4 of each byte. The product puts copies of them 7
/// bits apart, none of which overlap: bit j of copy j lands on bit 8·j + 4.
inline __m512i spread_to_bytes(__m512i bits) {
  const __m512i four = _mm512_and_si512(bits, _mm512_set1_epi32(15));
  const __m512i copies = _mm512_set1_epi32(1 << 4 | 1 << 11 | 1 << 18 | 1 << 25);
  return _mm512_and_si512(_mm512_mullo_epi32(four, copies), _mm512_set1_epi8(16));
}

struct Q50 {
  static constexpr size_t kBlockBytes = 22;
  static constexpr int kOffset = 16;

  static inline void unpack_run(const PanelBlocks& blocks, size_t index, Run& run) {
    constexpr size_t kQh = 2;  // offsetof(BlockQ5_0, qh)
    constexpr size_t kQs = 6;  // offsetof(BlockQ5_0, qs)
    const __m512i low_half = _mm512_set1_epi8(15);
    for (size_t b = 0; b < 2; ++b) {
      const size_t block = (2 * index + b) * kBlockBytes;
      __m512i packed[4];
      load_dwords(blocks, block + kQs, packed);
      __m512i fifths = load_fifth_bits(blocks, block + kQh);
      for (size_t i = 0; i < 8; ++i) {
        const __m512i both = packed[i % 4];
        const __m512i shifted = i < 4 ? both : _mm512_srli_epi32(both, 4);
        run[8 * b + i] =
            _mm512_or_si512(_mm512_and_si512(shifted, low_half), spread_to_bytes(fifths));
        fifths = _mm512_srli_epi32(fifths, 4);
      }
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
