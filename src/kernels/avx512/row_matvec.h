// One quantised token times many rows, the product that decoding is made of.
//
// Four rows pass together: each activation that is loaded serves four, and their sums across lanes
// are folded together (fold.h). The lanes of the float step are rows, as everywhere.
//
// With many tokens panels win (panel_matmul.h): they share the unpacking, and have no sums across
// lanes.
//
// A family of formats is a struct, made for one call, with
//   Panels                        the family for several tokens
//   multiply(rows, ahead)         the products of four rows
#pragma once

#include "kernels/avx512/ahead.h"
#include "kernels/avx512/bits.h"
#include "kernels/avx512/panel_matmul.h"

namespace sluice::kernels::avx512 {
namespace {

constexpr size_t kQuadRows = 4;
constexpr size_t kColumnsMax = 16384;  ///< of activations that a family can prepare

/// Twice four longer rows do not fit the first-level cache, and panels win: Q8_0 of 2048 columns
/// (2176 bytes) comes from RAM with 29 GB/s, in panels with 26; of 2816 with 20 and 27, of 4096
/// with 12 and 26 (one core of an EPYC Genoa, 2026).
constexpr size_t kRowBytesMax = 2304;

/// Where sums of four products of codes begin that are too large by the offset.
inline __m512i negative_sums(__m512i start, __m512i q, int offset) {
  const __m512i negative = _mm512_sub_epi8(_mm512_setzero_si512(), q);
  return _mm512_dpbusd_epi32(start, _mm512_set1_epi8(static_cast<char>(offset)), negative);
}

/// Four rows; where the matrix ends early, the last one stands in for the missing.
struct Quad {
  const std::byte* row[kQuadRows];

  /// 16 bytes at `offset` of each.
  __m512i load_16_each(size_t offset) const {
    const auto pair = [&](size_t i) {
      return _mm256_inserti128_si256(_mm256_castsi128_si256(load_16(row[i] + offset)),
                                     load_16(row[i + 1] + offset), 1);
    };
    return _mm512_inserti64x4(_mm512_castsi256_si512(pair(0)), pair(2), 1);
  }
  /// Four bytes at `offset` of each.
  __m128i load_4_each(size_t offset) const {
    const auto load = [&](size_t i) {
      int32_t bytes;
      std::memcpy(&bytes, row[i] + offset, sizeof bytes);
      return _mm_cvtsi32_si128(bytes);
    };
    return _mm_unpacklo_epi64(_mm_unpacklo_epi32(load(0), load(1)),
                              _mm_unpacklo_epi32(load(2), load(3)));
  }
  /// Two binary16 at `offset` of each: the floats of the first ones, then of the second.
  __m256 load_f16_pair_each(size_t offset) const {
    const __m128i halves = _mm_shuffle_epi8(
        load_4_each(offset), _mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15));
    return _mm256_cvtph_ps(halves);
  }
  /// The binary16 at `offset` of each, as floats. The two bytes before it are read as well.
  __m128 load_f16_each(size_t offset) const {
    const __m128i pairs = load_4_each(offset - 2);
    return _mm_cvtph_ps(_mm_shuffle_epi8(
        pairs, _mm_setr_epi8(2, 3, 6, 7, 10, 11, 14, 15, 2, 3, 6, 7, 10, 11, 14, 15)));
  }
};

/// The rows side by side are the beginnings of four runs of rows that follow each other: runs of
/// less than this would bring the place that is loaded ahead so near to the rows in use that the
/// prefetcher falls behind. Q4_K of 768 columns comes from RAM with 29 GB/s in runs of three rows
/// of 432 bytes, in runs of one with 23 (one core of an EPYC Genoa, 2026).
constexpr size_t kRunBytes = 1296;

/// Rows first, first + run and so on.
inline Quad rows_apart(const MatmulArgs& args, size_t first, size_t run) {
  const size_t last = args.row_count - 1;
  Quad rows;
  for (size_t i = 0; i < kQuadRows; ++i)
    rows.row[i] = args.weights + (first + i * run < last ? first + i * run : last) * args.row_bytes;
  return rows;
}

inline void store_apart(const MatmulArgs& args, size_t first, size_t run, __m128 products) {
  const size_t left = args.row_count - first;
  if (run == 1) {
    const auto rows = static_cast<__mmask8>(left < kQuadRows ? (1u << left) - 1 : 15);
    return _mm_mask_storeu_ps(args.out + first, rows, products);
  }
  alignas(16) float out[kQuadRows];
  _mm_store_ps(out, products);
  for (size_t i = 0; i < kQuadRows; ++i)
    if (i * run < left) args.out[first + i * run] = out[i];
}

template <class Family>
void multiply_rows(const MatmulArgs& args) {
  if (args.token_count != 1 || args.cols > kColumnsMax || args.row_bytes > kRowBytesMax)
    return multiply_panels<typename Family::Panels>(args);
  if (args.row_count == 0) return;
  const Family family(args);
  Ahead ahead(args.weights, (args.row_count - 1) * args.row_bytes + family.row_bytes());
  const size_t run = args.row_bytes < kRunBytes ? kRunBytes / args.row_bytes : 1;
  for (size_t begin = 0; begin < args.row_count; begin += kQuadRows * run) {
    for (size_t first = begin; first < begin + run && first < args.row_count; ++first) {
      const Quad rows = rows_apart(args, first, run);
      ahead.reach(args.weights + (begin + kQuadRows * run) * args.row_bytes);
      store_apart(args, first, run, family.multiply(rows, ahead));
    }
  }
}

}  // namespace
}  // namespace sluice::kernels::avx512
