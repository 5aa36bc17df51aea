// The bytes of the block formats, and the integers packed into them.
//
// A row of quantised weights is a run of blocks. Each block here is a struct whose size is its size
// in the file; multi-byte fields are little-endian, as is every machine we run on. Blocks may lie
// at any address, so a block is copied out (`load_block`) or read with unaligned loads, never
// through a cast pointer.
//
// unpack_* turns the packed bits of a block into one int8 per weight, in the order of the row.
// Decoders and the reference kernels are written on top of these; what the integers mean in floats
// is each format's own formula, stated beside its struct. Plain functions; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "quant/dtype.h"

namespace sluice {

/// w = d · (q − 8); byte i holds q of element i in its low half and of element i + 16 above.
struct BlockQ4_0 {
  uint16_t d;  ///< binary16
  uint8_t qs[kSmallBlock / 2];
};
static_assert(sizeof(BlockQ4_0) == 18);

/// w = d · q + m. Elements as in Q4_0.
struct BlockQ4_1 {
  uint16_t d;  ///< binary16
  uint16_t m;  ///< binary16
  uint8_t qs[kSmallBlock / 2];
};
static_assert(sizeof(BlockQ4_1) == 20);

/// w = d · (q − 16); the fifth bit of element i is bit i of qh. Elements as in Q4_0.
struct BlockQ5_0 {
  uint16_t d;  ///< binary16
  uint8_t qh[4];
  uint8_t qs[kSmallBlock / 2];
};
static_assert(sizeof(BlockQ5_0) == 22);

/// w = d · q + m. Bits as in Q5_0.
struct BlockQ5_1 {
  uint16_t d;  ///< binary16
  uint16_t m;  ///< binary16
  uint8_t qh[4];
  uint8_t qs[kSmallBlock / 2];
};
static_assert(sizeof(BlockQ5_1) == 24);

/// w = d · q
struct BlockQ8_0 {
  uint16_t d;  ///< binary16
  int8_t qs[kSmallBlock];
};
static_assert(sizeof(BlockQ8_0) == 34);

/// w = (d · scale_s) · q − (dmin · min_s), s = element / 16, q in 0 … 3. The low half of scales[s]
/// is scale_s, the high half min_s. The codes lie in `qs` as unpack_two_bits has them.
struct BlockQ2_K {
  uint8_t scales[kSuperBlock / 16];
  uint8_t qs[kSuperBlock / 4];
  uint16_t d;     ///< binary16
  uint16_t dmin;  ///< binary16
};
static_assert(sizeof(BlockQ2_K) == 84);

/// w = (d · scale_s) · q, s = element / 16, q in −4 … 3 (stored plus 4), scale_s in −32 … 31 (see
/// unpack_q3_k_scales). The lower two bits of q lie in `qs` as unpack_two_bits has them; the third
/// of element 32·k + i is bit k of hmask[i].
struct BlockQ3_K {
  uint8_t hmask[kSuperBlock / 8];
  uint8_t qs[kSuperBlock / 4];
  uint8_t scales[12];
  uint16_t d;  ///< binary16
};
static_assert(sizeof(BlockQ3_K) == 110);

inline constexpr size_t kKSubBlocks = 8;  ///< sub-blocks of 32 in Q4_K and Q5_K

/// w = (d · scale_s) · q − (dmin · min_s), s = element / 32, q in 0 … 15. Each run of 32 bytes of
/// `qs` holds 64 elements: the low halves the first 32, the high halves the next 32.
struct BlockQ4_K {
  uint16_t d;          ///< binary16
  uint16_t dmin;       ///< binary16
  uint8_t scales[12];  ///< eight 6-bit scales and mins, see unpack_k_scales
  uint8_t qs[kSuperBlock / 2];
};
static_assert(sizeof(BlockQ4_K) == 144);

/// As Q4_K, with a fifth bit of q: bit s of byte i of `qh` belongs to element 32·s + i.
struct BlockQ5_K {
  uint16_t d;          ///< binary16
  uint16_t dmin;       ///< binary16
  uint8_t scales[12];  ///< as in Q4_K
  uint8_t qh[kSuperBlock / 8];
  uint8_t qs[kSuperBlock / 2];
};
static_assert(sizeof(BlockQ5_K) == 176);

/// w = (d · scale_s) · q, s = element / 16, q in −32 … 31 (stored plus 32). Each half of 128
/// elements has 64 bytes of `ql` and 32 of `qh`: element 32·k + i of a half takes its low four bits
/// from ql[32·(k % 2) + i] (k < 2: low half of the byte, else the high half) and bits 2·k, 2·k + 1
/// of qh[i] as its upper two.
struct BlockQ6_K {
  uint8_t ql[kSuperBlock / 2];
  uint8_t qh[kSuperBlock / 4];
  int8_t scales[kSuperBlock / 16];
  uint16_t d;  ///< binary16
};
static_assert(sizeof(BlockQ6_K) == 210);

/// w = d · kIq4Values[q] (quant/iq4_values.h). Elements as in Q4_0.
struct BlockIQ4_NL {
  uint16_t d;  ///< binary16
  uint8_t qs[kSmallBlock / 2];
};
static_assert(sizeof(BlockIQ4_NL) == 18);

/// w = half_of_e8m0(e) · kTwiceE2m1[q] (quant/fp4.h). Elements as in Q4_0.
struct BlockMXFP4 {
  uint8_t e;
  uint8_t qs[kSmallBlock / 2];
};
static_assert(sizeof(BlockMXFP4) == 17);

/// w = half_of_e4m3(scales[s]) · kTwiceE2m1[q] (quant/fp4.h), s = element / 16. Byte i of the eight
/// of a sub-block holds q of its element i in its low half and of element i + 8 above.
struct BlockNVFP4 {
  static constexpr size_t kElements = 64;
  static constexpr size_t kSubBlock = 16;
  uint8_t scales[kElements / kSubBlock];
  uint8_t qs[kElements / 2];
};
static_assert(sizeof(BlockNVFP4) == 36);

/// w = d · q, q = 1 where bit i % 8 of byte i / 8 is set, else −1.
struct BlockQ1_0 {
  static constexpr size_t kElements = 128;
  uint16_t d;  ///< binary16
  uint8_t qs[kElements / 8];
};
static_assert(sizeof(BlockQ1_0) == 18);

/// w = d · (q − 1); bits 2·(i % 4) and 2·(i % 4) + 1 of byte i / 4 are q of element i.
struct BlockQ2_0 {
  static constexpr size_t kElements = 64;
  uint16_t d;  ///< binary16
  uint8_t qs[kElements / 4];
};
static_assert(sizeof(BlockQ2_0) == 18);

/// w = (d · scale_s) · kIq4Values[code], s = element / 32, scale_s in −32 … 31 (stored plus 32).
/// The low four bits of scale s are half s % 2 of scales_l[s / 2], the upper two are bits 2·s and
/// 2·s + 1 of scales_h. Byte i of the 16 of a sub-block holds the code of element i in its low half
/// and of element i + 16 above.
struct BlockIQ4_XS {
  uint16_t d;  ///< binary16
  uint16_t scales_h;
  uint8_t scales_l[kSuperBlock / 64];
  uint8_t qs[kSuperBlock / 2];
};
static_assert(sizeof(BlockIQ4_XS) == 136);

/// w = d · q, q in −1 … 1. A byte holds the digits q + 1 of up to five elements as a number of base
/// 3, the first digit leading, written as a binary fraction: value / 3^5 · 256, rounded up. Byte i
/// of the first 32 holds elements i, i + 32, … i + 128; byte i of the next 16 elements 160 + i,
/// 176 + i, …; and byte i of qh the elements 240 + i, 244 + i, … of which there are only four.
struct BlockTQ1_0 {
  uint8_t qs[48];
  uint8_t qh[4];
  uint16_t d;  ///< binary16
};
static_assert(sizeof(BlockTQ1_0) == 54);

/// w = d · q, q in −1 … 1, stored plus 1 (a stored 3 means 2), as unpack_two_bits has it.
struct BlockTQ2_0 {
  uint8_t qs[kSuperBlock / 4];
  uint16_t d;  ///< binary16
};
static_assert(sizeof(BlockTQ2_0) == 66);

/// The block at `index` of a row that may lie at any address.
template <class Block>
Block load_block(const std::byte* blocks, size_t index) {
  Block block;
  std::memcpy(&block, blocks + index * sizeof(Block), sizeof(Block));
  return block;
}

template <class Block>
void store_block(const Block& block, std::byte* blocks, size_t index) {
  std::memcpy(blocks + index * sizeof(Block), &block, sizeof(Block));
}

/// The 6-bit scales and mins of Q4_K and Q5_K. Of the 12 bytes, the first four hold scales 0 … 3
/// and the next four mins 0 … 3 in their low six bits; the last four hold the low halves of scale
/// and min 4 … 7, whose upper two bits fill the top of the first eight bytes.
struct KScales {
  uint8_t scale[kKSubBlocks];  ///< 0 … 63
  uint8_t min[kKSubBlocks];    ///< 0 … 63
};
KScales unpack_k_scales(const uint8_t* packed);
void pack_k_scales(const KScales& scales, uint8_t* packed);

/// The scales and mins of Q2_K.
struct Q2KScales {
  uint8_t scale[kSuperBlock / 16];  ///< 0 … 15
  uint8_t min[kSuperBlock / 16];    ///< 0 … 15
};
Q2KScales unpack_q2_k_scales(const uint8_t* packed);

/// The 16 scales of Q3_K, −32 … 31. Half s / 8 of byte s % 8 has the low four bits of scale s (plus
/// 32), bits 2·(s / 4) and the next of byte 8 + s % 4 the upper two.
void unpack_q3_k_scales(const uint8_t* packed, int8_t* scale);

/// The eight scales of IQ4_XS.
void unpack_iq4_xs_scales(const BlockIQ4_XS& block, int8_t* scale);

/// The codes 0 … 3 of Q2_K, Q3_K and TQ2_0. Each half of 128 elements has 32 bytes: bits 2·k and
/// 2·k + 1 of byte i belong to element 32·k + i of the half.
void unpack_two_bits(const uint8_t* qs, int8_t* q);

/// One int8 per weight, in the order of the row: the q of the formats' formulas, in the IQ4 and FP4
/// formats the value that the code stands for.
void unpack_q4_0(const BlockQ4_0& block, int8_t* q);
void unpack_q4_1(const BlockQ4_1& block, int8_t* q);
void unpack_q5_0(const BlockQ5_0& block, int8_t* q);
void unpack_q5_1(const BlockQ5_1& block, int8_t* q);
void unpack_iq4_nl(const BlockIQ4_NL& block, int8_t* q);
void unpack_iq4_xs(const BlockIQ4_XS& block, int8_t* q);
void unpack_mxfp4(const BlockMXFP4& block, int8_t* q);
void unpack_nvfp4(const BlockNVFP4& block, int8_t* q);
void unpack_q1_0(const BlockQ1_0& block, int8_t* q);
void unpack_q2_0(const BlockQ2_0& block, int8_t* q);
void unpack_q2_k(const BlockQ2_K& block, int8_t* q);
void unpack_q3_k(const BlockQ3_K& block, int8_t* q);
void unpack_q4_k(const BlockQ4_K& block, int8_t* q);
void unpack_q5_k(const BlockQ5_K& block, int8_t* q);
void unpack_q6_k(const BlockQ6_K& block, int8_t* q);
void unpack_tq1_0(const BlockTQ1_0& block, int8_t* q);
void unpack_tq2_0(const BlockTQ2_0& block, int8_t* q);

}  // namespace sluice
