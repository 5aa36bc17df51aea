// The formats with code books (quant/code_book_blocks.h). A block is expanded first: its entries
// are looked up, and what they give is a block of bytes, as plain as a format of super_block.h can
// be, whose loops do the rest. Expanding takes longer than multiplying by one token, and a lookup
// of eight codes is one load; so the bytes' way through the first-level cache hardly shows.
//
// Codes are stored as code + kOffset, which is never negative.
//
// A format is a struct with
//   Block, kBook               the struct and the book
//   kOffset                    the largest magnitude of a code
//   entries(block, to)         the numbers of the entries, to 16-bit words in memory
//   signs(block)               32 bytes of signs
//   with_signs(codes, minus)   32 codes of the book, and where minuses are, to codes + kOffset
//   scales(block)              2s + 1 of each 16 columns, as int16
//   d(block)                   a binary16
#pragma once

#include "kernels/avx2/super_block.h"
#include "quant/code_book_blocks.h"
#include "quant/code_books.h"

namespace sluice::kernels::avx2 {
namespace {

/// even_signs of each byte of seven bits.
inline __m256i even_signs_of(__m256i sevens) {
  const __m256i parities = _mm256_setr_epi8(  // of the index, in bit 7
      0, -128, -128, 0, -128, 0, 0, -128, -128, 0, 0, -128, 0, -128, -128, 0,  //
      0, -128, -128, 0, -128, 0, 0, -128, -128, 0, 0, -128, 0, -128, -128, 0);
  const __m256i folded = _mm256_xor_si256(sevens, _mm256_srli_epi16(sevens, 4));
  return _mm256_or_si256(sevens, _mm256_shuffle_epi8(parities, low_half_bytes(folded)));
}

/// The four times seven bits of each 32-bit word become its bytes.
inline __m256i spread_sevens(__m256i words) {
  const auto byte = [](__m256i bits, uint32_t mask) {
    return _mm256_and_si256(bits, _mm256_set1_epi32(static_cast<int>(mask)));
  };
  const __m256i low = _mm256_or_si256(byte(words, 0x7f), byte(_mm256_slli_epi32(words, 1), 0x7f00));
  return _mm256_or_si256(low, _mm256_or_si256(byte(_mm256_slli_epi32(words, 2), 0x7f0000),
                                              byte(_mm256_slli_epi32(words, 3), 0x7f000000)));
}

/// 2s + 1
inline __m256i odd(__m256i s) {
  return _mm256_add_epi16(_mm256_add_epi16(s, s), _mm256_set1_epi16(1));
}

/// The scales in the top four bits of the words of IQ2_XXS and IQ3_XXS, for each 32 columns.
inline __m256i top_scales(__m256i words) {
  const __m256i s = _mm256_srli_epi32(words, 28);
  return odd(_mm256_or_si256(s, _mm256_slli_epi32(s, 16)));
}

/// Half bytes in order: the low half of each byte, then the high one.
inline __m128i half_bytes(__m128i bytes) {
  const __m128i mask = _mm_set1_epi8(15);
  return _mm_unpacklo_epi8(_mm_and_si128(bytes, mask),
                           _mm_and_si128(_mm_srli_epi16(bytes, 4), mask));
}

/// Each two successive 16-bit words of two registers become one byte each, in order.
inline __m256i pack_words(__m256i first, __m256i second) {
  return _mm256_permute4x64_epi64(_mm256_packus_epi16(first, second), 0xd8);
}

/// 32 bytes become 32 words in memory.
inline void store_words(__m256i bytes, uint16_t* to) {
  store32(to, _mm256_cvtepu8_epi16(_mm256_castsi256_si128(bytes)));
  store32(to + 16, _mm256_cvtepu8_epi16(_mm256_extracti128_si256(bytes, 1)));
}

/// The codes of 32 columns.
template <size_t kCount>
inline __m256i look_up(const CodeBook<kCount, 8>& book, const uint16_t* entries) {
  const auto codes = [&](size_t i) { return load_integer<long long>(book.codes[entries[i]]); };
  return _mm256_setr_epi64x(codes(0), codes(1), codes(2), codes(3));
}
template <size_t kCount>
inline __m256i look_up(const CodeBook<kCount, 4>& book, const uint16_t* entries) {
  const auto codes = [&](size_t i) { return load_integer<int>(book.codes[entries[i]]); };
  return _mm256_setr_epi32(codes(0), codes(1), codes(2), codes(3), codes(4), codes(5), codes(6),
                           codes(7));
}

/// All ones in the columns from 32·g on that have a sign.
inline __m256i minus_columns(__m256i signs, size_t g) {
  const __m256i four = _mm256_permutevar8x32_epi32(signs, _mm256_set1_epi32(static_cast<int>(g)));
  const __m256i spread =
      _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
  const __m256i bits = _mm256_set1_epi64x(static_cast<long long>(0x8040201008040201));
  return _mm256_cmpeq_epi8(_mm256_and_si256(_mm256_shuffle_epi8(four, spread), bits), bits);
}

/// Formats whose codes are magnitudes.
template <class Shape, int kLargest>
struct Magnitudes {
  using Block = Shape;
  static constexpr int kOffset = kLargest;

  static __m256i with_signs(__m256i codes, __m256i minus) {
    const __m256i offset = _mm256_sub_epi8(_mm256_set1_epi8(kOffset), minus);
    return _mm256_add_epi8(_mm256_xor_si256(codes, minus), offset);
  }
  static uint16_t d(const std::byte* block) {
    return load_integer<uint16_t>(block + offsetof(Block, d));
  }
};

struct ExpandedBlock {
  alignas(32) uint8_t codes[kSuperBlock];
  alignas(32) int16_t scales[kSuperBlock / 16];
  uint16_t d;  ///< binary16
};

template <class Format>
inline void expand(const std::byte* block, ExpandedBlock& expanded) {
  constexpr size_t kEntries = 32 / sizeof(Format::kBook.codes[0]);  // of 32 columns
  alignas(32) uint16_t entries[8 * kEntries];
  Format::entries(block, entries);
  const __m256i signs = Format::signs(block);
#pragma GCC unroll 8
  for (size_t g = 0; g < 8; ++g) {
    const __m256i codes = look_up(Format::kBook, entries + kEntries * g);
    store32(expanded.codes + 32 * g, Format::with_signs(codes, minus_columns(signs, g)));
  }
  store32(expanded.scales, Format::scales(block));
  expanded.d = Format::d(block);
}

/// An expanded block as a format of super_block.h.
template <class Format>
struct Expanded {
  static constexpr size_t kBlockBytes = sizeof(ExpandedBlock);
  static constexpr size_t kOffsetD = offsetof(ExpandedBlock, d);
  static constexpr float kStep = Format::Block::kStep;
  static constexpr size_t kSubBlock = 16;
  static constexpr bool kHasMin = false;
  static constexpr size_t kCodeMax = 2 * Format::kOffset;

  template <class Source>
  static __m256i codes(const Source& source, size_t g) {
    return source.load(offsetof(ExpandedBlock, codes) + 32 * g);
  }
  static __m256i scales(const std::byte* block) {
    return load32(block + offsetof(ExpandedBlock, scales));
  }
  static __m256i scales_of(__m256i scales, size_t g) {
    const __m256i eight = g < 4 ? _mm256_permute2x128_si256(scales, scales, 0x00)
                                : _mm256_permute2x128_si256(scales, scales, 0x11);
    return _mm256_shuffle_epi8(eight, word_shuffle(2 * g % 8, 2 * g % 8 + 1));
  }
  static __m256i sum_weights(const std::byte* block) {
    return _mm256_mullo_epi16(scales(block), _mm256_set1_epi16(-Format::kOffset));
  }
};

/// The family: blocks are expanded, then they are SuperBlocks.
template <class Format>
struct CodeBookBlocks : SuperBlocks<Expanded<Format>> {
  using Plain = SuperBlocks<Expanded<Format>>;
  static constexpr size_t kBlockBytes = sizeof(typename Format::Block);

  struct EightBlocks {
    ExpandedBlock blocks[kPanelRows];
    const std::byte* places[kPanelRows];

    explicit EightBlocks(const std::byte* const* packed) {
      for (size_t r = 0; r < kPanelRows; ++r) {
        expand<Format>(packed[r], blocks[r]);
        places[r] = reinterpret_cast<const std::byte*>(blocks + r);
      }
    }
  };

  static __m256 add_rows(const std::byte* const* blocks, const Activations& x, __m256 acc) {
    const EightBlocks expanded(blocks);
    return Plain::add_rows(expanded.places, x, acc);
  }

  static void unpack(const std::byte* const* blocks, typename Plain::PanelBlock& panel) {
    const EightBlocks expanded(blocks);
    Plain::unpack(expanded.places, panel);
  }
};

}  // namespace
}  // namespace sluice::kernels::avx2
