#include "kernels/avx512/avx512.h"
#include "kernels/avx512/row_small_block.h"

namespace sluice::kernels::avx512 {
namespace {

struct Q80 : HalfScaled<BlockQ8_0> {
  static constexpr int kOffset = 128;

  static inline void unpack_run(const PanelBlocks& blocks, size_t index, Run& run) {
    constexpr size_t kQs = offsetof(BlockQ8_0, qs);
    const size_t first = 2 * index * kBlockBytes + kQs;
    load_dwords(blocks, first, run);
    load_dwords(blocks, first + 16, run + 4);
    load_dwords(blocks, first + kBlockBytes, run + 8);
    load_dwords(blocks, first + kBlockBytes + 16, run + 12);
    const __m512i sign_bit = _mm512_set1_epi8(-128);  // flipping it adds 128
    for (__m512i& group : run) group = _mm512_xor_si512(group, sign_bit);
  }
};

struct Q80Rows {
  using Panels = SmallBlocks<Q80>;
  static constexpr int kOffset = Q80::kOffset;
  static constexpr bool kHasMin = false;

  struct Activations {
    alignas(64) int8_t q[2][64];
    __m512i start[2];

    Activations() = default;
    Activations(const int8_t* columns, int offset) {
      std::memcpy(q, columns, sizeof q);
      for (size_t i = 0; i < 2; ++i)
        start[i] = negative_sums(_mm512_setzero_si512(), _mm512_load_si512(q[i]), offset);
    }
  };

  template <class Blocks>
  static inline __m512i multiply(const Blocks& blocks, const Activations& x, SmallScales& scales) {
    scales.d = load_scales(blocks);
    __m512i pairs[2];  // blocks 0 and 1, 2 and 3; a block's sums are in two quarters
    for (size_t pair = 0; pair < 2; ++pair) {
      __m512i sums[kQuadRows];
      for (size_t row = 0; row < kQuadRows; ++row) {
        const __m512i codes = load_codes(blocks.at(row, 2 * pair), blocks.at(row, 2 * pair + 1));
        sums[row] = _mm512_dpbusd_epi32(x.start[pair], codes, _mm512_load_si512(x.q[pair]));
      }
      pairs[pair] = fold_four(sums[0], sums[1], sums[2], sums[3]);
    }
    return _mm512_add_epi32(_mm512_shuffle_i64x2(pairs[0], pairs[1], 0x88),
                            _mm512_shuffle_i64x2(pairs[0], pairs[1], 0xdd));
  }

 private:
  /// They go through memory: scalar loads leave the vector units free, and the value is needed
  /// late.
  template <class Blocks>
  static inline __m512 load_scales(const Blocks& blocks) {
    alignas(32) uint16_t bits[kQuadBlocks][kQuadRows];
    for (size_t b = 0; b < kQuadBlocks; ++b)
      for (size_t row = 0; row < kQuadRows; ++row)
        std::memcpy(&bits[b][row], blocks.at(row, b), sizeof(uint16_t));
    return _mm512_cvtph_ps(_mm256_load_si256(reinterpret_cast<const __m256i*>(bits)));
  }

  static inline __m512i load_codes(const std::byte* first, const std::byte* second) {
    constexpr size_t kQs = offsetof(BlockQ8_0, qs);
    const auto load = [](const std::byte* p) {
      return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + kQs));
    };
    const __m512i both = _mm512_inserti64x4(_mm512_castsi256_si512(load(first)), load(second), 1);
    return _mm512_xor_si512(both, _mm512_set1_epi8(-128));  // flipping the sign adds 128
  }
};

}  // namespace

void matvec_q8_0(const MatmulArgs& args) {
  multiply_rows<RowSmallBlocks<Q80Rows>>(args);
}
void matmul_q8_0(const MatmulArgs& args) {
  multiply_panels<SmallBlocks<Q80>>(args);
}

}  // namespace sluice::kernels::avx512
