// The bytes of the formats that take their weights from code books (code_books.h): IQ1_S and IQ1_M,
// IQ2_XXS, IQ2_XS and IQ2_S, IQ3_XXS and IQ3_S. blocks.h says what holds for blocks in general.
//
// A super-block of 256 columns is 32 entries of eight codes, or 64 of four, one after the other.
// Each has a number, split into low bits here and upper bits there; each eight columns have a byte
// of signs, bit i for column i, set for minus; each 16 or 32 columns have a scale s of three or
// four bits. In all seven formats a weight is
//
//   w = d · kStep · (2s + 1) · q
//
// with an integer q of at most seven bits and kStep a power of two, so that every product here is
// exact. Some formats store seven bits of a byte of signs; the eighth then makes the number of
// minuses even.
//
// Plain functions; any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "quant/blocks.h"

namespace sluice {

/// A block in integers.
struct CodedBlock {
  int8_t q[kSuperBlock];
  int32_t scale[kSuperBlock / 16];  ///< 2s + 1 of each 16 columns
};

/// Eight bytes for each 32 columns: four entry numbers, then a little-endian word with the signs of
/// entry i, seven bits each, from bit 7·i on, and s in the top four.
struct BlockIQ2_XXS {
  static constexpr float kStep = 0.125f;
  uint16_t d;  ///< binary16
  uint8_t qs[kSuperBlock / 4];
};
static_assert(sizeof(BlockIQ2_XXS) == 66);

/// A word for each eight columns: nine bits of entry number, then seven of signs. s belongs to 16
/// columns, the even ones in the low half of a byte.
struct BlockIQ2_XS {
  static constexpr float kStep = 0.125f;
  uint16_t d;  ///< binary16
  uint8_t qs[kSuperBlock / 4];
  uint8_t scales[kSuperBlock / 32];
};
static_assert(sizeof(BlockIQ2_XS) == 74);

/// Entry numbers of ten bits: eight in `qs`, two more at bit 2·(i % 4) of qh[i / 4]. Whole bytes of
/// signs. Scales as in IQ2_XS.
struct BlockIQ2_S {
  static constexpr float kStep = 0.125f;
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
  static constexpr float kStep = 0.25f;
  uint16_t d;  ///< binary16
  uint8_t qs[kSuperBlock / 4];
  uint8_t signs_and_scales[kSuperBlock / 8];
};
static_assert(sizeof(BlockIQ3_XXS) == 98);

/// Entries of four codes, with numbers of nine bits: eight in `qs`, bit i % 8 of qh[i / 8] on top.
/// Whole bytes of signs. s belongs to 32 columns, the even ones in the low half of a byte.
struct BlockIQ3_S {
  static constexpr float kStep = 1.0f;
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
  static constexpr float kStep = 0.125f;
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
  static constexpr float kStep = 0.125f;
  uint8_t qs[kSuperBlock / 8];
  uint8_t qh[kSuperBlock / 16];
  uint8_t scales[kSuperBlock / 32];
};
static_assert(sizeof(BlockIQ1_M) == 56);

/// The seven bits of `packed` and, on top, the bit that makes the number of ones even.
constexpr uint8_t even_signs(uint32_t packed) {
  const uint32_t seven = packed & 127;
  const uint32_t folded = seven ^ (seven >> 4);
  const uint32_t parity = (0x6996u >> (folded & 15)) & 1;
  return static_cast<uint8_t>(seven | (parity << 7));
}

/// d, a binary16, of a block that has it in one piece …
template <class Block>
constexpr uint16_t scale_of(const Block& block) {
  return block.d;
}
/// … and of one that has it in four.
constexpr uint16_t scale_of(const BlockIQ1_M& block) {
  uint32_t d = 0;
  for (uint32_t i = 0; i < 4; ++i)
    d |= static_cast<uint32_t>(block.scales[2 * i + 1] >> 4) << (4 * i);
  return static_cast<uint16_t>(d);
}

CodedBlock unpack_coded(const BlockIQ2_XXS& block);
CodedBlock unpack_coded(const BlockIQ2_XS& block);
CodedBlock unpack_coded(const BlockIQ2_S& block);
CodedBlock unpack_coded(const BlockIQ3_XXS& block);
CodedBlock unpack_coded(const BlockIQ3_S& block);
CodedBlock unpack_coded(const BlockIQ1_S& block);
CodedBlock unpack_coded(const BlockIQ1_M& block);

}  // namespace sluice
