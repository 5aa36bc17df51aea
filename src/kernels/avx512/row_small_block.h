// Rows of the formats in blocks of 32, for one token (row_matvec.h).
//
// Four blocks of four rows are done together: vpdpbusd leaves several sums to a block, and folding
// brings those of a block into a quarter, its lanes the rows. What codes are above the true weight
// comes off where the sums start, for all rows the same.
//
// Arithmetic is the limit, and of it the ports for shuffles: folding small sums by packs and
// taking codes and scales by two-table shuffles instead of inserts and scalar loads took MXFP4 from
// 18 to 26 GB/s from RAM on one core, Q4_0 from 24 to 28 (EPYC Genoa, 2026; panels: 14 and 19).
//
// Tried and dropped: the four quarters of the float step through memory, 10 % slower than six
// extractions.
//
// A format is a struct with
//   Panels                        its family for several tokens
//   kOffset, kHasMin              see small_block.h
//   Activations                   128 columns, laid out as its codes are, made from
//                                 int8_t[128] and the offset
//   multiply(blocks, x, scales)   Σ code · x, [block][row], and the scales
#pragma once

#include "kernels/avx512/fold.h"
#include "kernels/avx512/row_matvec.h"
#include "kernels/avx512/small_block.h"

namespace sluice::kernels::avx512 {
namespace {

constexpr size_t kQuadBlocks = 4;
constexpr size_t kQuadColumns = kQuadBlocks * kSmallBlock;

/// Four blocks of each of four rows. Where a row ends after kCount, its last block stands in.
template <size_t kBytes, size_t kCount>
struct SmallBlockQuad {
  static constexpr size_t kBlockBytes = kBytes;
  static constexpr size_t kBlocks = kCount;
  Quad first;  ///< the first of them

  const std::byte* at(size_t row, size_t block) const {
    return first.row[row] + (block < kCount ? block : kCount - 1) * kBytes;
  }
};

/// What the float step takes from the blocks, [block][row].
struct SmallScales {
  __m512 d;
  __m512 m;  ///< if the format has it
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

  /// The float step comes one round late: a chain of many instructions, it would else keep the
  /// next rounds' from being looked at. Reading ahead comes last: before the arithmetic it cost
  /// IQ4_NL a fifth.
  inline __m128 multiply(const Quad& rows, Ahead& ahead) const {
    __m128 acc = _mm_setzero_ps();
    Terms terms = {};
    size_t b = 0;
    for (; b + kQuadBlocks <= block_count_; b += kQuadBlocks) {
      const Terms next = multiply_blocks<kQuadBlocks>(rows, b);
      acc = add<kQuadBlocks>(terms, acc);
      terms = next;
      ahead.template advance<kQuadRows * kQuadBlocks * kBlockBytes / 64>();
    }
    acc = add<kQuadBlocks>(terms, acc);
    switch (block_count_ - b) {
      case 1:
        return add<1>(multiply_blocks<1>(rows, b), acc);
      case 2:
        return add<2>(multiply_blocks<2>(rows, b), acc);
      case 3:
        return add<3>(multiply_blocks<3>(rows, b), acc);
    }
    return acc;
  }

 private:
  /// What four blocks of activations have in common for all rows.
  struct alignas(64) Prepared {
    typename Format::Activations x;
    float sum[kQuadBlocks][kQuadRows];    ///< Σ x, in all lanes
    float scale[kQuadBlocks][kQuadRows];  ///< in all lanes
  };

  void prepare(const Token& token, size_t first) {
    Prepared& to = prepared_[first / kQuadBlocks];
    const size_t left = block_count_ - first;
    const size_t count = left < kQuadBlocks ? left : kQuadBlocks;
    alignas(64) int8_t q[kQuadColumns] = {};
    std::memcpy(q, token.q + first * kSmallBlock, count * kSmallBlock);
    to.x = typename Format::Activations(q, Format::kOffset);
    for (size_t b = 0; b < kQuadBlocks; ++b) {
      const size_t block = first + (b < count ? b : 0);
      const int sum = token.sum16[2 * block] + token.sum16[2 * block + 1];
      for (size_t row = 0; row < kQuadRows; ++row) {
        to.sum[b][row] = static_cast<float>(sum);
        to.scale[b][row] = token.scale[block];
      }
    }
  }

  /// What the float step multiplies, [block][row].
  struct Terms {
    __m512 d;         ///< times the activations' scale
    __m512 products;  ///< Σ q·x
    __m512 m;         ///< likewise
    __m512 sums;      ///< Σ x
  };

  template <size_t kCount>
  inline Terms multiply_blocks(const Quad& rows, size_t first) const {
    const Prepared& x = prepared_[first / kQuadBlocks];
    SmallBlockQuad<kBlockBytes, kCount> blocks;
    for (size_t i = 0; i < kQuadRows; ++i) blocks.first.row[i] = rows.row[i] + first * kBlockBytes;
    SmallScales scales = {};
    const __m512 products = _mm512_cvtepi32_ps(Format::multiply(blocks, x.x, scales));
    const __m512 a = _mm512_load_ps(x.scale[0]);
    return {_mm512_mul_ps(scales.d, a), products, _mm512_mul_ps(scales.m, a),
            _mm512_load_ps(x.sum[0])};
  }

  template <size_t kCount>
  static inline __m128 add(const Terms& terms, __m128 acc) {
    acc = add_quarter<0>(terms, acc);
    if constexpr (kCount > 1) acc = add_quarter<1>(terms, acc);
    if constexpr (kCount > 2) acc = add_quarter<2>(terms, acc);
    if constexpr (kCount > 3) acc = add_quarter<3>(terms, acc);
    return acc;
  }

  template <size_t kIndex>
  static inline __m128 add_quarter(const Terms& terms, __m128 acc) {
    const auto quarter = [](__m512 x) { return _mm512_extractf32x4_ps(x, kIndex); };
    acc = _mm_fmadd_ps(quarter(terms.d), quarter(terms.products), acc);
    if constexpr (Format::kHasMin) acc = _mm_fmadd_ps(quarter(terms.m), quarter(terms.sums), acc);
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
  __m512i start;

  HalvedActivations() = default;
  HalvedActivations(const int8_t* q, int offset) {
    for (size_t b = 0; b < kQuadBlocks; ++b) {
      std::memcpy(low + 16 * b, q + kSmallBlock * b, 16);
      std::memcpy(high + 16 * b, q + kSmallBlock * b + 16, 16);
    }
    start = negative_sums(negative_sums(_mm512_setzero_si512(), _mm512_load_si512(low), offset),
                          _mm512_load_si512(high), offset);
  }
};

/// Four blocks of a row in two registers: the first 64 of their bytes and the last 64, which
/// overlap. Masks see to it that nothing behind the end of a row is read.
template <size_t kBytes, size_t kCount>
struct RowBytes {
  static constexpr size_t kLastFrom = kQuadBlocks * kBytes - 64;
  static_assert(kBytes >= 16 && kBytes <= 32);
  __m512i first;
  __m512i last;

  explicit RowBytes(const std::byte* p) {
    if constexpr (kCount == kQuadBlocks) {
      __m512i loaded = _mm512_loadu_si512(p);
      asm("" : "+v"(loaded));  // else g++ loads for each use, and loads across lines are slow
      first = loaded;
      last = _mm512_loadu_si512(p + kLastFrom);
    } else {
      first = _mm512_maskz_loadu_epi8(from_to_end(0), p);
      last = _mm512_maskz_loadu_epi8(from_to_end(kLastFrom), p + kLastFrom);
    }
  }

 private:
  static constexpr uint64_t from_to_end(size_t from) {
    constexpr size_t kEnd = kCount * kBytes;
    if (from >= kEnd) return 0;
    return kEnd - from < 64 ? (uint64_t{1} << (kEnd - from)) - 1 : ~uint64_t{0};
  }
};

/// Whether a field that ends there in a block lies in the first 64 bytes, and where in the two
/// registers it begins.
constexpr bool in_first(size_t block_bytes, size_t block, size_t end) {
  return block * block_bytes + end <= 64;
}
constexpr size_t place(size_t block_bytes, size_t block, size_t offset, size_t size) {
  const size_t at = block * block_bytes + offset;
  return in_first(block_bytes, block, offset + size) ? at : at + 128 - kQuadBlocks * block_bytes;
}

/// 16 bytes at kOffset of each of the four blocks.
template <size_t kOffset, size_t kBytes, size_t kCount>
inline __m512i take_codes(const RowBytes<kBytes, kCount>& bytes) {
  struct Order {
    alignas(64) uint8_t at[64];
    constexpr Order() : at{} {
      for (size_t i = 0; i < 64; ++i)
        at[i] = static_cast<uint8_t>(place(kBytes, i / 16, kOffset, 16) + i % 16);
    }
  };
  static constexpr Order kOrder;
  return _mm512_permutex2var_epi8(bytes.first, _mm512_load_si512(kOrder.at), bytes.last);
}

/// The binary16 that blocks begin with, and where there is a min, the one behind it.
template <bool kHasMin>
struct HalfScales {
  template <class Bytes>
  static inline void take(const Bytes (&rows)[kQuadRows], SmallScales& scales) {
    take_lanes(rows, scales);
  }

 private:
  template <size_t kBytes, size_t kCount>
  static inline void take_lanes(const RowBytes<kBytes, kCount> (&rows)[kQuadRows],
                                SmallScales& scales) {
    __m512i lanes = _mm512_setzero_si512();
    if constexpr (in_first(kBytes, kQuadBlocks - 1, 4)) {  // two rows at once
      static constexpr Order<kBytes, 64> kOrder;
      const __m512i order = _mm512_load_si512(kOrder.at);
      lanes = _mm512_mask_blend_epi16(
          0xcccccccc, _mm512_permutex2var_epi16(rows[0].first, order, rows[1].first),
          _mm512_permutex2var_epi16(rows[2].first, order, rows[3].first));
    } else {
      static constexpr Order<kBytes, 0> kOrder;
      const __m512i order = _mm512_load_si512(kOrder.at);
      for (size_t i = 0; i < kQuadRows; ++i)
        lanes = _mm512_mask_mov_epi16(
            lanes, 0x11111111u << i, _mm512_permutex2var_epi16(rows[i].first, order, rows[i].last));
    }
    scales.d = _mm512_cvtph_ps(_mm512_castsi512_si256(lanes));
    if constexpr (kHasMin) scales.m = _mm512_cvtph_ps(_mm512_extracti64x4_epi64(lanes, 1));
  }

  /// d, then m, each [block][row]; what belongs to every second row is kSecond bytes further on.
  template <size_t kBytes, size_t kSecond>
  struct Order {
    alignas(64) uint16_t at[32];
    constexpr Order() : at{} {
      for (size_t i = 0; i < 32; ++i)
        at[i] =
            static_cast<uint16_t>((place(kBytes, i / 4 % 4, i / 16 * 2, 2) + i % 2 * kSecond) / 2);
    }
  };
};

inline void split_halves(__m512i both, __m512i& low, __m512i& high) {
  low = _mm512_and_si512(both, _mm512_set1_epi8(15));
  high = high_half_bytes(both);
}

/// The table's bytes for the low halves and for the high ones. The instruction looks at six bits,
/// so that the table is there four times.
inline void look_up_halves(__m128i table, __m512i both, __m512i& low, __m512i& high) {
  const __m512i fourfold = _mm512_broadcast_i32x4(table);
  low = _mm512_permutexvar_epi8(both, fourfold);
  high = _mm512_permutexvar_epi8(_mm512_srli_epi16(both, 4), fourfold);
}

/// Adds fifth bits: of a block's 32 at kQh the lower 16 belong to the low halves.
template <size_t kQh, class Blocks>
inline void add_fifth_bits(const Blocks& blocks, size_t row, __m512i& low, __m512i& high) {
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

/// The formats whose codes are half bytes, 16 low ones before 16 high ones. Nibbles is a struct
/// with
///   Panels, kOffset, kHasMin     as above
///   kLargest                     the largest |code − offset|
///   kQs                          where the half bytes lie in a block
///   Scales                       HalfScales or the like
///   codes(blocks, row, both, low, high)   from a row's bytes
template <class Nibbles>
struct HalvedFormat : Nibbles {
  using Activations = HalvedActivations;

  template <class Blocks>
  static inline __m512i multiply(const Blocks& blocks, const Activations& x, SmallScales& scales) {
    const __m512i x_low = _mm512_load_si512(x.low);
    const __m512i x_high = _mm512_load_si512(x.high);
    using Bytes = RowBytes<Blocks::kBlockBytes, Blocks::kBlocks>;
    const Bytes bytes[kQuadRows] = {Bytes(blocks.first.row[0]), Bytes(blocks.first.row[1]),
                                    Bytes(blocks.first.row[2]), Bytes(blocks.first.row[3])};
    Nibbles::Scales::take(bytes, scales);
    __m512i sums[kQuadRows];
#pragma GCC unroll 4
    for (size_t row = 0; row < kQuadRows; ++row) {
      __m512i low;
      __m512i high;
      Nibbles::codes(blocks, row, take_codes<Nibbles::kQs>(bytes[row]), low, high);
      sums[row] = _mm512_dpbusd_epi32(x.start, low, x_low);
      sums[row] = _mm512_dpbusd_epi32(sums[row], high, x_high);
    }
    if constexpr (16 * Nibbles::kLargest * 127 < 1 << 15)
      return fold_four_small(sums[0], sums[1], sums[2], sums[3]);
    else
      return fold_four(sums[0], sums[1], sums[2], sums[3]);
  }
};

}  // namespace
}  // namespace sluice::kernels::avx512
