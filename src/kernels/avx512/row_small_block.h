// Rows of the formats in blocks of 32, for one token (row_matvec.h).
//
// Four blocks of four rows are done together: vpdpbusd leaves several sums to a block, and folding
// brings those of a block into a quarter, its lanes the rows. What codes are above the true weight
// is a factor of the block's sum of activations, for all rows the same.
//
// A format is a struct with
//   Panels                        its family for several tokens
//   kOffset                       see panel.h
//   Activations                   128 columns, laid out as its codes are, made from int8_t[128]
//   multiply(blocks, x)           Σ code · x, [block][row]; of `blocks` the four of a row
#pragma once

#include "kernels/avx512/fold.h"
#include "kernels/avx512/row_matvec.h"
#include "kernels/avx512/small_block.h"

namespace sluice::kernels::avx512 {
namespace {

constexpr size_t kQuadBlocks = 4;
constexpr size_t kQuadColumns = kQuadBlocks * kSmallBlock;

/// Four blocks of each of four rows; where a row ends early, its last block stands in.
struct SmallBlockQuad {
  Quad rows;
  size_t offset[kQuadBlocks];  ///< of the blocks in a row

  const std::byte* at(size_t row, size_t block) const { return rows.row[row] + offset[block]; }
};

template <class Format>
class RowSmallBlocks {
 public:
  using Panels = typename Format::Panels;
  static constexpr size_t kBlockBytes = Panels::kBlockBytes;

  explicit RowSmallBlocks(const MatmulArgs& args) : block_count_(args.cols / kSmallBlock) {
    const Token token = TokenRows<kSmallBlock>(args).at(0, 0);
    for (size_t b = 0; b < block_count_; b += kQuadBlocks) prepare(token, b);
  }

  size_t row_bytes() const { return block_count_ * kBlockBytes; }

  inline __m128 multiply(const Quad& rows, Ahead& ahead) const {
    __m128 acc = _mm_setzero_ps();
    size_t b = 0;
    const std::byte* goal = rows.row[3] + row_bytes() + kQuadRows * kQuadBlocks * kBlockBytes;
    for (; b + kQuadBlocks <= block_count_; b += kQuadBlocks) {
      ahead.reach(goal);
      goal += kQuadRows * kQuadBlocks * kBlockBytes;
      acc = add_blocks<kQuadBlocks>(rows, b, acc);
    }
    switch (block_count_ - b) {
      case 1:
        return add_blocks<1>(rows, b, acc);
      case 2:
        return add_blocks<2>(rows, b, acc);
      case 3:
        return add_blocks<3>(rows, b, acc);
    }
    return acc;
  }

 private:
  /// What four blocks of activations have in common for all rows.
  struct alignas(64) Prepared {
    typename Format::Activations x;
    int32_t excess[kQuadBlocks][kQuadRows];  ///< offset · Σ x, in all lanes
    float scale[kQuadBlocks][kQuadRows];     ///< in all lanes
  };

  void prepare(const Token& token, size_t first) {
    Prepared& to = prepared_[first / kQuadBlocks];
    const size_t left = block_count_ - first;
    const size_t count = left < kQuadBlocks ? left : kQuadBlocks;
    alignas(64) int8_t q[kQuadColumns] = {};
    std::memcpy(q, token.q + first * kSmallBlock, count * kSmallBlock);
    to.x = typename Format::Activations(q);
    for (size_t b = 0; b < kQuadBlocks; ++b) {
      const size_t block = first + (b < count ? b : 0);
      const int sum = token.sum16[2 * block] + token.sum16[2 * block + 1];
      for (size_t row = 0; row < kQuadRows; ++row) {
        to.excess[b][row] = Format::kOffset * sum;
        to.scale[b][row] = token.scale[block];
      }
    }
  }

  template <size_t kCount>
  inline __m128 add_blocks(const Quad& rows, size_t first, __m128 acc) const {
    const Prepared& x = prepared_[first / kQuadBlocks];
    SmallBlockQuad blocks = {rows, {}};
    for (size_t b = 0; b < kQuadBlocks; ++b)
      blocks.offset[b] = (first + (b < kCount ? b : kCount - 1)) * kBlockBytes;
    const __m512i sums =
        _mm512_sub_epi32(Format::multiply(blocks, x.x), _mm512_load_si512(x.excess));
    const __m512 factor = _mm512_mul_ps(scales(blocks), _mm512_load_ps(x.scale[0]));
    return add_quarters_in_order<kCount>(factor, _mm512_cvtepi32_ps(sums), acc);
  }

  /// The binary16 that each block begins with, [block][row]. It goes through memory: scalar loads
  /// leave the vector units free, and the value is needed late.
  static inline __m512 scales(const SmallBlockQuad& blocks) {
    alignas(32) uint16_t bits[kQuadBlocks][kQuadRows];
    for (size_t b = 0; b < kQuadBlocks; ++b)
      for (size_t row = 0; row < kQuadRows; ++row)
        std::memcpy(&bits[b][row], blocks.at(row, b), sizeof(uint16_t));
    return _mm512_cvtph_ps(_mm256_load_si256(reinterpret_cast<const __m256i*>(bits)));
  }

  /// acc = fma(a, b, acc), quarter after quarter.
  template <size_t kCount>
  static inline __m128 add_quarters_in_order(__m512 a, __m512 b, __m128 acc) {
    acc = _mm_fmadd_ps(_mm512_castps512_ps128(a), _mm512_castps512_ps128(b), acc);
    if constexpr (kCount > 1)
      acc = _mm_fmadd_ps(_mm512_extractf32x4_ps(a, 1), _mm512_extractf32x4_ps(b, 1), acc);
    if constexpr (kCount > 2)
      acc = _mm_fmadd_ps(_mm512_extractf32x4_ps(a, 2), _mm512_extractf32x4_ps(b, 2), acc);
    if constexpr (kCount > 3)
      acc = _mm_fmadd_ps(_mm512_extractf32x4_ps(a, 3), _mm512_extractf32x4_ps(b, 3), acc);
    return acc;
  }

  size_t block_count_;
  Prepared prepared_[kColumnsMax / kQuadColumns];
};

/// Activations in two registers, the first 16 of four blocks and the last 16: they meet the halves
/// of bytes.
struct HalvedActivations {
  alignas(64) int8_t low[64];
  alignas(64) int8_t high[64];

  HalvedActivations() = default;
  explicit HalvedActivations(const int8_t* q) {
    for (size_t b = 0; b < kQuadBlocks; ++b) {
      std::memcpy(low + 16 * b, q + kSmallBlock * b, 16);
      std::memcpy(high + 16 * b, q + kSmallBlock * b + 16, 16);
    }
  }
};

/// The formats whose codes are half bytes, 16 low ones before 16 high ones. Nibbles is a struct
/// with
///   kQs                          where the half bytes lie in a block
///   codes(blocks, row, low, high)
template <class Nibbles>
struct HalvedFormat {
  using Activations = HalvedActivations;

  static inline __m512i multiply(const SmallBlockQuad& blocks, const Activations& x) {
    const __m512i x_low = _mm512_load_si512(x.low);
    const __m512i x_high = _mm512_load_si512(x.high);
    __m512i sums[kQuadRows];
    for (size_t row = 0; row < kQuadRows; ++row) {
      const auto load = [&](size_t b) { return load_16(blocks.at(row, b) + Nibbles::kQs); };
      __m512i both = _mm512_castsi128_si512(load(0));
      both = _mm512_inserti32x4(both, load(1), 1);
      both = _mm512_inserti32x4(both, load(2), 2);
      both = _mm512_inserti32x4(both, load(3), 3);
      __m512i low = _mm512_and_si512(both, _mm512_set1_epi8(15));
      __m512i high = high_half_bytes(both);
      Nibbles::complete(blocks, row, low, high);
      sums[row] = _mm512_dpbusd_epi32(_mm512_setzero_si512(), low, x_low);
      sums[row] = _mm512_dpbusd_epi32(sums[row], high, x_high);
    }
    return fold_four(sums[0], sums[1], sums[2], sums[3]);
  }
};

}  // namespace
}  // namespace sluice::kernels::avx512
