// How the formats in small blocks get from transposed bytes (load_dwords, panel.h) to one byte per
// code. Private to the including file.
#pragma once

#include "kernels/avx512/panel.h"

namespace sluice::kernels::avx512 {
namespace {

/// The half bytes of 16 bytes: 16 columns from their low halves, then 16 from the high ones.
inline void load_half_bytes(const PanelBlocks& blocks, size_t offset, __m512i* groups) {
  const __m512i low_half = _mm512_set1_epi8(15);
  __m512i packed[4];
  load_dwords(blocks, offset, packed);
  for (size_t i = 0; i < 4; ++i) {
    groups[i] = _mm512_and_si512(packed[i], low_half);
    groups[4 + i] = _mm512_and_si512(_mm512_srli_epi32(packed[i], 4), low_half);
  }
}

/// The four bytes at `offset` of each row.
inline __m512i load_dword(const PanelBlocks& blocks, size_t offset) {
  alignas(64) uint32_t dwords[kPanelRows];
  for (size_t r = 0; r < kPanelRows; ++r)
    std::memcpy(dwords + r, blocks.first + offset + r * blocks.row_bytes, sizeof dwords[r]);
  return _mm512_load_si512(dwords);
}

/// Where byte k of a dword's four is found: k bits, or 2·k bits, behind the first; see spread.
constexpr uint64_t kEachBit = 0x2322212003020100;
constexpr uint64_t kEachSecondBit = 0x2624222006040200;

/// Turns each dword into four bytes: the eight bits from `first` and `places` on. What of them is
/// not the dword's own is its neighbour's.
inline __m512i spread(__m512i dwords, uint64_t places, int first) {
  const uint64_t from = places + 0x0101010101010101 * static_cast<uint64_t>(first & 63);
  return _mm512_multishift_epi64_epi8(_mm512_set1_epi64(static_cast<int64_t>(from)), dwords);
}

/// Bit i of each dword moves to bit `to` of column i, everything else to 0: eight groups.
inline void spread_bits(__m512i dwords, int to, __m512i* groups) {
  const __m512i bit = _mm512_set1_epi8(static_cast<char>(1 << to));
#pragma GCC unroll 8
  for (int g = 0; g < 8; ++g)
    groups[g] = _mm512_and_si512(spread(dwords, kEachBit, 4 * g - to), bit);
}

/// Replaces each code by the table's byte.
inline void look_up(__m128i table, Run& codes) {
  const __m512i fourfold = _mm512_broadcast_i32x4(table);
  for (__m512i& group : codes) group = _mm512_shuffle_epi8(fourfold, group);
}

}  // namespace
}  // namespace sluice::kernels::avx512
