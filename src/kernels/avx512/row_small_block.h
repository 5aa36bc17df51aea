// Rows of the formats in blocks of 32, for one token (row_matvec.h).
//
// Four blocks of four rows are done together: vpdpbusd leaves several sums to a block, and folding
// brings those of a block into a quarter, its lanes the rows. What codes are above the true weight
// is a factor of the block's sum of activations, for all rows the same.
//
// A format is a struct with
//   Panels                        its family for several tokens
//   kOffset, kHasMin              see small_block.h
//   Activations                   128 columns, laid out as its codes are, made from int8_t[128]
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

template <size_t kIndex>
inline __m128 quarter(__m512 x) {
  return _mm512_extractf32x4_ps(x, kIndex);
}

/// Calls add(0), add(1), …, with constants.
template <size_t kCount, class Add>
inline void for_each_quarter(Add add) {
  add(std::integral_constant<int, 0>{});
  if constexpr (kCount > 1) add(std::integral_constant<int, 1>{});
  if constexpr (kCount > 2) add(std::integral_constant<int, 2>{});
  if constexpr (kCount > 3) add(std::integral_constant<int, 3>{});
}

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
    float sum[kQuadBlocks][kQuadRows];       ///< Σ x, in all lanes
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
        to.sum[b][row] = static_cast<float>(sum);
        to.scale[b][row] = token.scale[block];
      }
    }
  }

  template <size_t kCount>
  inline __m128 add_blocks(const Quad& rows, size_t first, __m128 acc) const {
    const Prepared& x = prepared_[first / kQuadBlocks];
    SmallBlockQuad<kBlockBytes, kCount> blocks;
    for (size_t i = 0; i < kQuadRows; ++i)
      blocks.first.row[i] = rows.row[i] + first * kBlockBytes;
    SmallScales scales;
    __m512i sums = Format::multiply(blocks, x.x, scales);
    if constexpr (Format::kOffset != 0)
      sums = _mm512_sub_epi32(sums, _mm512_load_si512(x.excess));
    const __m512 a = _mm512_load_ps(x.scale[0]);
    const __m512 products = _mm512_cvtepi32_ps(sums);
    scales.d = _mm512_mul_ps(scales.d, a);
    if constexpr (Format::kHasMin) {
      const __m512 column_sums = _mm512_load_ps(x.sum[0]);
      scales.m = _mm512_mul_ps(scales.m, a);
      for_each_quarter<kCount>([&](auto b) {
        acc = _mm_fmadd_ps(quarter<b>(scales.d), quarter<b>(products), acc);
        acc = _mm_fmadd_ps(quarter<b>(scales.m), quarter<b>(column_sums), acc);
      });
    } else {
      for_each_quarter<kCount>([&](auto b) {
        acc = _mm_fmadd_ps(quarter<b>(scales.d), quarter<b>(products), acc);
      });
    }
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
      first = _mm512_loadu_si512(p);
      last = _mm512_loadu_si512(p + kLastFrom);
    } else {
      first = _mm512_maskz_loadu_epi8(from_to(0), p);
      last = _mm512_maskz_loadu_epi8(from_to(kLastFrom), p + kLastFrom);
    }
  }

 private:
  static constexpr uint64_t from_to(size_t from) {
    constexpr size_t kEnd = kCount * kBytes;
    if (from >= kEnd) return 0;
    return kEnd - from < 64 ? (uint64_t{1} << (kEnd - from)) - 1 : ~uint64_t{0};
  }
};

/// Where a field of a block lies in RowBytes.
template <size_t kBytes, size_t kOffset, size_t kSize>
struct Field {
  static constexpr bool in_first(size_t block) {
    return block * kBytes + kOffset + kSize <= 64;
  }
  static constexpr uint8_t place(size_t block) {
    const size_t from = in_first(block) ? 0 : kQuadBlocks * kBytes - 64;
    return static_cast<uint8_t>(block * kBytes + kOffset - from);
  }
  /// Of four fields with `per_block` lanes each, those in the last bytes.
  static constexpr uint64_t lanes_in_last(size_t per_block) {
    uint64_t lanes = 0;
    for (size_t i = 0; i < kQuadBlocks * per_block; ++i)
      lanes |= uint64_t{!in_first(i / per_block)} << i;
    return lanes;
  }
};

/// 16 bytes at `offset` of each of the four blocks.
template <size_t kOffset, size_t kBytes, size_t kCount>
inline __m512i take_codes(const RowBytes<kBytes, kCount>& bytes) {
  using Codes = Field<kBytes, kOffset, 16>;
  struct Order {
    alignas(64) uint8_t at[64];
    constexpr Order() : at{} {
      for (size_t i = 0; i < 64; ++i) at[i] = static_cast<uint8_t>(Codes::place(i / 16) + i % 16);
    }
  };
  static constexpr Order kOrder;
  const __m512i order = _mm512_load_si512(kOrder.at);
  return _mm512_mask_permutexvar_epi8(_mm512_permutexvar_epi8(order, bytes.first),
                                      Codes::lanes_in_last(16), order, bytes.last);
}

/// Binary16 floats at kOffset of each block.
template <size_t kOffset>
struct HalvesAt {
  __m512i halves = _mm512_setzero_si512();  ///< in the lower half, [block][row]

  template <size_t kBytes, size_t kCount>
  inline void take(const RowBytes<kBytes, kCount>& bytes, size_t row) {
    using Half = Field<kBytes, kOffset, 2>;
    const auto at = [](size_t b) { return int64_t{0x0001000100010001} * (Half::place(b) / 2); };
    const __m512i order = _mm512_setr_epi64(at(0), at(1), at(2), at(3), 0, 0, 0, 0);
    constexpr auto kLast = static_cast<uint32_t>(Half::lanes_in_last(kQuadRows));
    const uint32_t lanes = 0x1111u << row;
    halves = _mm512_mask_permutexvar_epi16(halves, lanes & ~kLast, order, bytes.first);
    if constexpr (kLast != 0)
      halves = _mm512_mask_permutexvar_epi16(halves, lanes & kLast, order, bytes.last);
  }
  __m512 floats() const { return _mm512_cvtph_ps(_mm512_castsi512_si256(halves)); }
};

struct NoFloats {
  template <class Bytes>
  inline void take(const Bytes&, size_t) {}
  __m512 floats() const { return _mm512_setzero_ps(); }
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
///   kQs                          where the half bytes lie in a block
///   D, M                         the floats: HalvesAt, NoFloats or the like
///   codes(blocks, row, both, low, high)   from a row's bytes
template <class Nibbles>
struct HalvedFormat : Nibbles {
  using Activations = HalvedActivations;

  template <class Blocks>
  static inline __m512i multiply(const Blocks& blocks, const Activations& x, SmallScales& scales) {
    const __m512i x_low = _mm512_load_si512(x.low);
    const __m512i x_high = _mm512_load_si512(x.high);
    typename Nibbles::D d;
    typename Nibbles::M m;
    __m512i sums[kQuadRows];
    for (size_t row = 0; row < kQuadRows; ++row) {
      const RowBytes<Blocks::kBlockBytes, Blocks::kBlocks> bytes(blocks.at(row, 0));
      d.take(bytes, row);
      m.take(bytes, row);
      __m512i low;
      __m512i high;
      Nibbles::codes(blocks, row, take_codes<Nibbles::kQs>(bytes), low, high);
      sums[row] = _mm512_dpbusd_epi32(_mm512_setzero_si512(), low, x_low);
      sums[row] = _mm512_dpbusd_epi32(sums[row], high, x_high);
    }
    scales.d = d.floats();
    scales.m = m.floats();
    return fold_four(sums[0], sums[1], sums[2], sums[3]);
  }
};

}  // namespace
}  // namespace sluice::kernels::avx512
