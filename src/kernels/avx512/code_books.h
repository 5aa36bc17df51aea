// The formats with code books (quant/code_book_blocks.h). What takes the time is looking up
// entries: 32 or 64 loads a block, after its numbers have been split from their bytes.
//
// One token meets each row as its codes come: vpdpbusd sums each four columns, scales follow, and
// 16 rows' sums are folded together for the float step. For more tokens the codes go to memory,
// where 16 rows of them are as plain as a format of super_block.h can be.
//
// Codes are q + largest, which is never negative.
//
// Tried on Zen 4, 2026: gathers, eight or sixteen look-ups in an instruction, take 1.4 to 1.9 times
// as long as so many loads. Splitting a row right before its look-ups, 1.4 times as long as
// splitting 16 rows first: it is slow to read single numbers of a vector that it has just stored.
#pragma once

#include "kernels/avx512/fold.h"
#include "kernels/avx512/super_block.h"
#include "quant/code_fields.h"

namespace sluice::kernels::avx512 {
namespace {

/// The codes of 16 columns.
template <size_t kCount>
inline __m128i look_up_16(const CodeBook<kCount, 8>& book, const uint16_t* entries) {
  const auto codes = [&](size_t i) { return load_integer<long long>(book.codes[entries[i]]); };
  return _mm_insert_epi64(_mm_cvtsi64_si128(codes(0)), codes(1), 1);
}
template <size_t kCount>
inline __m128i look_up_16(const CodeBook<kCount, 4>& book, const uint16_t* entries) {
  const auto codes = [&](size_t i) { return load_integer<int>(book.codes[entries[i]]); };
  return _mm_setr_epi32(codes(0), codes(1), codes(2), codes(3));
}

/// The codes of 64 columns.
template <class Book>
inline __m512i look_up(const Book& book, const uint16_t* entries) {
  constexpr size_t kEntries = 16 / sizeof(book.codes[0]);  // of 16 columns
  const auto quarter = [&](size_t i) { return look_up_16(book, entries + kEntries * i); };
  const __m256i low = _mm256_inserti128_si256(_mm256_castsi128_si256(quarter(0)), quarter(1), 1);
  const __m256i high = _mm256_inserti128_si256(_mm256_castsi128_si256(quarter(2)), quarter(3), 1);
  return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

/// Codes of the book, and where minuses are, to q + largest.
template <CodeTraits kTraits>
inline __m512i with_signs(__m512i codes, __mmask64 minus) {
  if constexpr (kTraits.has_offsets) {
    const __m512i eights = _mm512_slli_epi16(_mm512_add_epi8(codes, _mm512_set1_epi8(1)), 3);
    return _mm512_mask_add_epi8(eights, ~minus, eights, _mm512_set1_epi8(2));
  }
  const __m512i offset = _mm512_set1_epi8(kTraits.largest);
  return _mm512_mask_sub_epi8(_mm512_add_epi8(offset, codes), minus, offset, codes);
}

/// Columns 64·i … 64·i + 63.
template <class Block>
inline __m512i codes_of(const CodeFields& fields, size_t i) {
  constexpr size_t kEntries = 64 / sizeof(Block::kBook.codes[0]);  // of 64 columns
  const auto minus = _cvtu64_mask64(load_integer<uint64_t>(fields.signs + 8 * i));
  return with_signs<Block::kTraits>(look_up(Block::kBook, fields.entries + kEntries * i), minus);
}

/// A panel's super-block, split.
template <class Block>
struct PanelFields {
  CodeFields rows[kPanelRows];

  explicit PanelFields(const PanelBlocks& blocks) {
    for (size_t r = 0; r < kPanelRows; ++r)
      read_fields<Block>(blocks.first + r * blocks.row_bytes, rows[r]);
    for (size_t i = 0; i < sizeof(Block) * kPanelRows; i += 256) blocks.prefetch.advance_256();
    asm("" : "+m"(rows));  // else g++ takes numbers out of registers, a slow instruction each
  }

  __m512 d() const {
    alignas(32) uint16_t bits[kPanelRows];
    for (size_t r = 0; r < kPanelRows; ++r) bits[r] = rows[r].d;
    const __m512 halves =
        _mm512_cvtph_ps(_mm256_load_si256(reinterpret_cast<const __m256i*>(bits)));
    return _mm512_mul_ps(halves, _mm512_set1_ps(Block::kTraits.step));
  }
};

/// A format of super_block.h.
template <class Block>
struct CodeBookPanel : AscendingRuns {
  static constexpr size_t kBlockBytes = sizeof(Block);
  static constexpr size_t kSubColumns = 16;
  static constexpr int kOffset = Block::kTraits.largest;
  static constexpr bool kHasMin = false;

  inline void unpack_run(const PanelBlocks& blocks, size_t index, Run& run) {
    if (index == 0) expand(PanelFields<Block>(blocks));
    for (size_t i = 0; i < 4; ++i)
      transpose_dwords(codes[0] + 64 * index + 16 * i, kSuperBlock, run + 4 * i);
  }

  inline void unpack_scales(const PanelBlocks&, SuperScales& to) {
    for (size_t piece = 0; piece < 2; ++piece) {
      __m512i pairs[4];
      transpose_dwords(scales[0] + 16 * piece, sizeof scales[0], pairs);
      for (size_t i = 0; i < 4; ++i) {
        int32_t(*pair)[kPanelRows] = to.scale + 8 * piece + 2 * i;
        _mm512_store_si512(pair[0], _mm512_and_si512(pairs[i], _mm512_set1_epi32(0xffff)));
        _mm512_store_si512(pair[1], _mm512_srli_epi32(pairs[i], 16));
      }
    }
    to.d = d;
  }

 private:
  inline void expand(const PanelFields<Block>& fields) {
    for (size_t r = 0; r < kPanelRows; ++r) {
      for (size_t i = 0; i < 4; ++i)
        _mm512_store_si512(codes[r] + 64 * i, codes_of<Block>(fields.rows[r], i));
      std::memcpy(scales[r], fields.rows[r].scales, sizeof scales[r]);
    }
    d = fields.d();
  }

  alignas(64) std::byte codes[kPanelRows][kSuperBlock];
  alignas(64) std::byte scales[kPanelRows][sizeof(CodeFields::scales)];
  __m512 d;
};

/// One token's super-block, 64 columns in a register.
template <CodeTraits kTraits>
struct TokenColumns {
  __m512i q[4];
  __m512i start[4];  ///< −largest times the sum of each four

  explicit TokenColumns(const int8_t* from) {
    const __m512i largest = _mm512_set1_epi8(kTraits.largest);
    for (size_t i = 0; i < 4; ++i) {
      q[i] = _mm512_loadu_si512(from + 64 * i);
      const __m512i excess = _mm512_dpbusd_epi32(_mm512_setzero_si512(), largest, q[i]);
      start[i] = _mm512_sub_epi32(_mm512_setzero_si512(), excess);
    }
  }
};

/// The scales of packed sums: each quarter has four sums of 16 columns, and four of the columns 64
/// further on.
inline __m512i spread_scales(const CodeFields& fields, size_t first) {
  const __m512i all =
      _mm512_broadcast_i64x4(_mm256_load_si256(reinterpret_cast<const __m256i*>(fields.scales)));
  const __m512i order = _mm512_set_epi64(  // 0 and 4, 1 and 5, 2 and 6, 3 and 7, four times each
      0x0007000700070007, 0x0003000300030003, 0x0006000600060006, 0x0002000200020002,
      0x0005000500050005, 0x0001000100010001, 0x0004000400040004, 0);
  return _mm512_permutexvar_epi16(
      _mm512_add_epi16(order, _mm512_set1_epi16(static_cast<short>(first))), all);
}

/// Σ (2s + 1) Σ q·x, over the lanes. Sums of four fit an int16, as is asserted.
template <class Block>
inline __m512i row_sums(const CodeFields& fields, const TokenColumns<Block::kTraits>& x) {
  static_assert(4 * Block::kTraits.largest * 127 < 1 << 15);
  __m512i sums[4];
  for (size_t i = 0; i < 4; ++i)
    sums[i] = _mm512_dpbusd_epi32(x.start[i], codes_of<Block>(fields, i), x.q[i]);
  const __m512i total =
      _mm512_madd_epi16(_mm512_packs_epi32(sums[0], sums[1]), spread_scales(fields, 0));
  return _mm512_dpwssd_epi32(total, _mm512_packs_epi32(sums[2], sums[3]), spread_scales(fields, 8));
}

/// Lane r is the sum of the lanes of rows[r].
inline __m512i fold_rows(const __m512i (&rows)[kPanelRows]) {
  __m512i halves[8];
  for (size_t i = 0; i < 8; ++i) halves[i] = fold_halves(rows[i], rows[i + 8]);
  __m512i quarters[4];
  for (size_t i = 0; i < 4; ++i) quarters[i] = fold_quarters(halves[i], halves[i + 4]);
  return fold_four(quarters[0], quarters[1], quarters[2], quarters[3]);
}

/// The family.
template <class Block>
struct CodeBookBlocks {
  using Panels = SuperBlocks<CodeBookPanel<Block>>;
  static constexpr size_t kBlockColumns = kSuperBlock;
  static constexpr size_t kBlockBytes = sizeof(Block);

  static inline void multiply(const PanelBlocks& blocks, size_t columns, Chunk& chunk) {
    if (chunk.count != 1) return Panels::multiply(blocks, columns, chunk);
    const PanelFields<Block> fields(blocks);
    const TokenColumns<Block::kTraits> x(chunk.tokens[0].q);
    __m512i rows[kPanelRows];
    for (size_t r = 0; r < kPanelRows; ++r) rows[r] = row_sums<Block>(fields.rows[r], x);
    const __m512 scale = _mm512_mul_ps(fields.d(), _mm512_set1_ps(*chunk.tokens[0].scale));
    chunk.acc[0] = _mm512_fmadd_ps(scale, _mm512_cvtepi32_ps(fold_rows(rows)), chunk.acc[0]);
  }
};

}  // namespace
}  // namespace sluice::kernels::avx512
