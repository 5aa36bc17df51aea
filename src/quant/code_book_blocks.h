// The bytes of the formats that take their weights from code books (code_books.h): IQ1_S and IQ1_M,
// IQ2_XXS, IQ2_XS and IQ2_S, IQ3_XXS and IQ3_S. blocks.h says what holds for blocks in general.
//
// A super-block of 256 columns is 32 entries of eight codes, or 64 of four, one after the other.
// Each has a number, split into low bits here and upper bits there; each eight columns have a byte
// of signs, bit i for column i, set for minus; each 16 or 32 columns have a scale s of three or
// four bits. In all seven formats a weight is
//
//   w = d · step · (2s + 1) · q
//
// with a small integer q, which is ± the code, and a power of two as step, so that every product
// here is exact. Some formats store seven bits of a byte of signs; the eighth then makes the number
// of minuses even.
//
// Plain functions; any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "quant/blocks.h"
#include "quant/code_books.h"

namespace sluice {

struct CodeTraits {
  float step;
  int32_t largest;           ///< |q|
  bool has_offsets = false;  ///< q = 8 · code ± 1
};

/// Eight bytes for each 32 columns: four entry numbers, then a little-endian word with the signs of
/// entry i, seven bits each, from bit 7·i on, and s in the top four.
struct BlockIQ2_XXS {
  static constexpr CodeTraits kTraits = {.step = 0.125f, .largest = 43};
  static constexpr const CodeBook<256, 8>& kBook = kBookIq2Xxs;
  uint16_t d;  ///< binary16
  uint8_t qs[kSuperBlock / 4];
};
static_assert(sizeof(BlockIQ2_XXS) == 66);

/// A word for each eight columns: nine bits of entry number, then seven of signs. s belongs to 16
/// columns, the even ones in the low half of a byte.
struct BlockIQ2_XS {
  static constexpr CodeTraits kTraits = {.step = 0.125f, .largest = 43};
  static constexpr const CodeBook<512, 8>& kBook = kBookIq2Xs;
  uint16_t d;  ///< binary16
  uint8_t qs[kSuperBlock / 4];
  uint8_t scales[kSuperBlock / 32];
};
static_assert(sizeof(BlockIQ2_XS) == 74);

/// Entry numbers of ten bits: eight in `qs`, two more at bit 2·(i % 4) of qh[i / 4]. Whole bytes of
/// signs. Scales as in IQ2_XS.
struct BlockIQ2_S {
  static constexpr CodeTraits kTraits = {.step = 0.125f, .largest = 43};
  static constexpr const CodeBook<1024, 8>& kBook = kBookIq2S;
  uint16_t d;  ///< binary16
  uint8_t qs[kSuperBlock / 8];
  uint8_t signs[kSuperBlock / 8];
  uint8_t qh[kSuperBlock / 32];
  uint8_t scales[kSuperBlock / 32];
};
static_assert(sizeof(BlockIQ2_S) == 82);

/// Entries of four codes, whose numbers are bytes; then, for each 32 columns, a word of signs and s
/// as in IQ2_XXS.
struct BlockIQ3_XXS {
  static constexpr CodeTraits kTraits = {.step = 0.25f, .largest = 62};
  static constexpr const CodeBook<256, 4>& kBook = kBookIq3Xxs;
  uint16_t d;  ///< binary16
  uint8_t qs[kSuperBlock / 4];
  uint8_t signs_and_scales[kSuperBlock / 8];
};
static_assert(sizeof(BlockIQ3_XXS) == 98);

/// Entries of four codes, with numbers of nine bits: eight in `qs`, bit i % 8 of qh[i / 8] on top.
/// Whole bytes of signs. s belongs to 32 columns, the even ones in the low half of a byte.
struct BlockIQ3_S {
  static constexpr CodeTraits kTraits = {.step = 1.0f, .largest = 15};
  static constexpr const CodeBook<512, 4>& kBook = kBookIq3S;
  uint16_t d;  ///< binary16
  uint8_t qs[kSuperBlock / 4];
  uint8_t qh[kSuperBlock / 32];
  uint8_t signs[kSuperBlock / 8];
  uint8_t scales[kSuperBlock / 64];
};
static_assert(sizeof(BlockIQ3_S) == 110);

/// No signs but offsets: q = 8 · code ± 1. Entry numbers of eleven bits: eight in `qs`; for each 32
/// columns a little-endian word with the upper three of its entry i at bit 3·i, s in three bits
/// from bit 12 on, and on top the sign of the offset, set for minus.
struct BlockIQ1_S {
  static constexpr CodeTraits kTraits = {.step = 0.125f, .largest = 9, .has_offsets = true};
  static constexpr const CodeBook<2048, 8>& kBook = kBookIq1;
  uint16_t d;  ///< binary16
  uint8_t qs[kSuperBlock / 8];
  uint8_t qh[kSuperBlock / 16];
};
static_assert(sizeof(BlockIQ1_S) == 50);

/// As IQ1_S, but each eight columns have an offset: half a byte of `qh` holds the upper three bits
/// of an entry's number and the sign of its offset. `scales` is four little-endian words, each with
/// s of four times 16 columns in three bits from bit 0 on, and, on top, four bits of d, the lowest
/// first.
struct BlockIQ1_M {
  static constexpr CodeTraits kTraits = {.step = 0.125f, .largest = 9, .has_offsets = true};
  static constexpr const CodeBook<2048, 8>& kBook = kBookIq1;
  uint8_t qs[kSuperBlock / 8];
  uint8_t qh[kSuperBlock / 16];
  uint8_t scales[kSuperBlock / 32];
};
static_assert(sizeof(BlockIQ1_M) == 56);

/// Kernels work with q + largest, and sum up a super-block in an int32, in any order.
static_assert(2 * 62 * int64_t{127} * 31 * kSuperBlock < int64_t{1} << 31);

/// A block in integers.
struct CodedBlock {
  int8_t q[kSuperBlock];
  int32_t scale[kSuperBlock / 16];  ///< 2s + 1 of each 16 columns
  uint16_t d;                       ///< binary16
};
template <class Block>
CodedBlock unpack_coded(const Block& block);

extern template CodedBlock unpack_coded(const BlockIQ2_XXS&);
extern template CodedBlock unpack_coded(const BlockIQ2_XS&);
extern template CodedBlock unpack_coded(const BlockIQ3_XXS&);
extern template CodedBlock unpack_coded(const BlockIQ1_S&);
extern template CodedBlock unpack_coded(const BlockIQ3_S&);
extern template CodedBlock unpack_coded(const BlockIQ2_S&);
extern template CodedBlock unpack_coded(const BlockIQ1_M&);

}  // namespace sluice
