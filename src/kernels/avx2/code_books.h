// The formats with code books (quant/code_book_blocks.h). A block is expanded first: its entries
// are looked up, and what they give is a block of bytes, as plain as a format of super_block.h can
// be, whose loops do the rest. Expanding takes longer than multiplying by one token, and a look-up
// of eight codes is one load; so the bytes' way through the first-level cache hardly shows.
// All eight blocks are split before the first is looked up: it is slow to read single numbers of a
// vector that has just been stored.
//
// Codes are stored as q + largest (code_book_blocks.h), which is never negative.
#pragma once

#include "kernels/avx2/super_block.h"
#include "quant/code_fields.h"

namespace sluice::kernels::avx2 {
namespace {

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

/// Codes of the book, and where minuses are, to q + largest.
template <CodeTraits kTraits>
inline __m256i with_signs(__m256i codes, __m256i minus) {
  if constexpr (kTraits.has_offsets) {
    const __m256i eights = _mm256_slli_epi16(_mm256_add_epi8(codes, _mm256_set1_epi8(1)), 3);
    return _mm256_add_epi8(eights, _mm256_andnot_si256(minus, _mm256_set1_epi8(2)));
  }
  const __m256i offset = _mm256_sub_epi8(_mm256_set1_epi8(kTraits.largest), minus);
  return _mm256_add_epi8(_mm256_xor_si256(codes, minus), offset);
}

struct ExpandedBlock {
  alignas(32) uint8_t codes[kSuperBlock];
  alignas(32) int16_t scales[kSuperBlock / 16];
  uint16_t d;  ///< binary16
};

template <class Block>
inline void expand(const CodeFields& fields, ExpandedBlock& expanded) {
  constexpr size_t kEntries = 32 / sizeof(Block::kBook.codes[0]);  // of 32 columns
  const __m256i signs = load32(fields.signs);
#pragma GCC unroll 8
  for (size_t g = 0; g < 8; ++g) {
    const __m256i codes = look_up(Block::kBook, fields.entries + kEntries * g);
    store32(expanded.codes + 32 * g, with_signs<Block::kTraits>(codes, minus_columns(signs, g)));
  }
  store32(expanded.scales, load32(fields.scales));
  expanded.d = fields.d;
}

/// An expanded block as a format of super_block.h.
template <class Block>
struct Expanded {
  static constexpr size_t kBlockBytes = sizeof(ExpandedBlock);
  static constexpr size_t kOffsetD = offsetof(ExpandedBlock, d);
  static constexpr float kStep = Block::kTraits.step;
  static constexpr size_t kSubBlock = 16;
  static constexpr bool kSigned = false;
  static constexpr bool kTwoSubBlocks = false;
  static constexpr bool kHasMin = false;
  static constexpr size_t kCodeMax = 2 * Block::kTraits.largest;

  template <class Source>
  static __m256i codes(const Source& source, size_t g) {
    return source.load(offsetof(ExpandedBlock, codes) + 32 * g);
  }
  static __m256i scales(const std::byte* block) {
    return load32(block + offsetof(ExpandedBlock, scales));
  }
  static __m256i sum_weights(const std::byte* block) {
    return _mm256_mullo_epi16(scales(block), _mm256_set1_epi16(-Block::kTraits.largest));
  }
};

/// The family: blocks are expanded, then they are SuperBlocks.
template <class Block>
struct CodeBookBlocks : SuperBlocks<Expanded<Block>> {
  using Plain = SuperBlocks<Expanded<Block>>;
  static constexpr size_t kBlockBytes = sizeof(Block);

  struct EightBlocks {
    ExpandedBlock blocks[kPanelRows];
    const std::byte* places[kPanelRows];

    explicit EightBlocks(const std::byte* const* packed) {
      CodeFields fields[kPanelRows];
      for (size_t r = 0; r < kPanelRows; ++r) read_fields<Block>(packed[r], fields[r]);
      for (size_t r = 0; r < kPanelRows; ++r) {
        expand<Block>(fields[r], blocks[r]);
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
