// The formats with code books (quant/code_book_blocks.h). The super-block of each row is expanded,
// which is to say that its entries are looked up: what comes of it is a row of bytes, and 16 such
// rows are as plain as a format of super_block.h can be.
//
// Codes are stored as q + largest, which is never negative. Gathers, eight look-ups in an
// instruction, take Zen 4 twice as long as eight loads.
#pragma once

#include "kernels/avx512/super_block.h"
#include "quant/code_fields.h"

namespace sluice::kernels::avx512 {
namespace {

template <class Integer>
inline Integer load_integer(const void* bytes) {
  Integer value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

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

template <class Block>
struct CodeBookBlocks {
  static constexpr size_t kBlockBytes = sizeof(Block);
  static constexpr size_t kSubColumns = 16;
  static constexpr int kOffset = Block::kTraits.largest;
  static constexpr bool kHasMin = false;

  static constexpr size_t half_column(size_t run, size_t half) { return 64 * run + 32 * half; }

  inline void unpack_run(const PanelBlocks& blocks, size_t index, Run& run) {
    if (index == 0) {
      constexpr size_t kPanelBytes = kPanelRows * kBlockBytes;
      for (size_t i = 0; i < kPanelBytes; i += 256) blocks.prefetch.advance_256();
      for (size_t r = 0; r < kPanelRows; ++r) expand(blocks.first + r * blocks.row_bytes, r);
    }
    for (size_t i = 0; i < 4; ++i)
      transpose_dwords(codes[0] + 64 * index + 16 * i, kSuperBlock, run + 4 * i);
  }

  inline void unpack_scales(const PanelBlocks&, SuperScales& to) {
    for (size_t piece = 0; piece < 2; ++piece) {
      __m512i pairs[4];
      transpose_dwords(scales[0] + 16 * piece, kScaleBytes, pairs);
      for (size_t i = 0; i < 4; ++i) {
        int32_t(*pair)[kPanelRows] = to.scale + 8 * piece + 2 * i;
        _mm512_store_si512(pair[0], _mm512_and_si512(pairs[i], _mm512_set1_epi32(0xffff)));
        _mm512_store_si512(pair[1], _mm512_srli_epi32(pairs[i], 16));
      }
    }
    const __m512 halves = _mm512_cvtph_ps(_mm256_load_si256(reinterpret_cast<const __m256i*>(d)));
    to.d = _mm512_mul_ps(halves, _mm512_set1_ps(Block::kTraits.step));
  }

 private:
  static constexpr size_t kScaleBytes = sizeof(CodeFields::scales);

  inline void expand(const std::byte* block, size_t row) {
    constexpr size_t kEntries = 64 / sizeof(Block::kBook.codes[0]);  // of 64 columns
    CodeFields fields;
    read_fields<Block>(block, fields);
#pragma GCC unroll 4
    for (size_t i = 0; i < 4; ++i) {
      const auto minus = _cvtu64_mask64(load_integer<uint64_t>(fields.signs + 8 * i));
      const __m512i looked_up = look_up(Block::kBook, fields.entries + kEntries * i);
      _mm512_store_si512(codes[row] + 64 * i, with_signs<Block::kTraits>(looked_up, minus));
    }
    std::memcpy(scales[row], fields.scales, kScaleBytes);
    d[row] = fields.d;
  }

  alignas(64) std::byte codes[kPanelRows][kSuperBlock];
  alignas(64) std::byte scales[kPanelRows][kScaleBytes];
  alignas(64) uint16_t d[kPanelRows];
};

}  // namespace
}  // namespace sluice::kernels::avx512
