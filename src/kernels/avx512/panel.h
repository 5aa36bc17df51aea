// Panels: how quantised weights meet quantised tokens in AVX-512.
//
// A panel is 16 weight rows. Its blocks are unpacked into bytes that lie as vpdpbusd wants them: a
// register (a group) holds the same 4 columns of each of the 16 rows. A token's 4 columns are one
// dword, which the instruction itself broadcasts from memory; so one instruction does 64
// multiplications, its 16 lanes are 16 outputs, and nothing is ever summed across lanes.
//
// The first operand of vpdpbusd is unsigned. Formats with signed weights unpack q + offset, and
// their sums start from −offset · Σx instead of zero, which is exact.
//
// Here: reading 16 rows at once, and the multiplication itself. All of it is private to the file
// that includes it: no symbol may leave an ISA folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/avx512/intrinsics.h"
#include "kernels/avx512/prefetch.h"

namespace sluice::kernels::avx512 {
namespace {

constexpr size_t kPanelRows = 16;
constexpr size_t kGroupColumns = 4;  ///< columns in a register of unpacked weights
constexpr size_t kRunColumns = 64;   ///< columns that formats unpack at a time
constexpr size_t kRunGroups = kRunColumns / kGroupColumns;

/// The unpacked weights of one run of columns: 16 registers. The first half holds 32 successive
/// columns, the second half another 32; the format says which.
using Run = __m512i[kRunGroups];

/// The same blocks of 16 rows: those of row r start at first + r · row_bytes.
struct PanelBlocks {
  const std::byte* first;
  size_t row_bytes;
  Prefetch& prefetch;
};

/// Hides where a value comes from. g++ would else keep the addresses of all 16 rows across uses,
/// run out of registers and spill; made anew each time they are part of the load.
template <class T>
inline T opaque(T value) {
  asm("" : "+r"(value));
  return value;
}

template <class Integer>
inline Integer load_integer(const void* bytes) {
  Integer value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

inline __m128i load_16(const std::byte* p) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
}

/// 16 bytes of the rows at p and four rows on.
inline __m256i load_row_pair(const std::byte* p, size_t four_rows) {
  return _mm256_inserti128_si256(_mm256_castsi128_si256(load_16(p)), load_16(p + four_rows), 1);
}

/// Transposes 16 bytes of each row: lane r of dwords[i] is the i-th four bytes of row r. Halves of
/// 256 bits, because a 128-bit insert into a longer register costs twice as much.
inline void transpose_dwords(const std::byte* first, size_t stride, __m512i* dwords) {
  __m256i halves[2][4];
  for (size_t half = 0; half < 2; ++half) {
    const std::byte* p = opaque(first + 8 * half * stride);
    const __m256i rows0 = load_row_pair(p, 4 * stride);
    const __m256i rows1 = load_row_pair(p + stride, 4 * stride);
    const __m256i rows2 = load_row_pair(p + 2 * stride, 4 * stride);
    const __m256i rows3 = load_row_pair(p + 3 * stride, 4 * stride);
    const __m256i low01 = _mm256_unpacklo_epi32(rows0, rows1);
    const __m256i high01 = _mm256_unpackhi_epi32(rows0, rows1);
    const __m256i low23 = _mm256_unpacklo_epi32(rows2, rows3);
    const __m256i high23 = _mm256_unpackhi_epi32(rows2, rows3);
    halves[half][0] = _mm256_unpacklo_epi64(low01, low23);
    halves[half][1] = _mm256_unpackhi_epi64(low01, low23);
    halves[half][2] = _mm256_unpacklo_epi64(high01, high23);
    halves[half][3] = _mm256_unpackhi_epi64(high01, high23);
  }
  for (size_t i = 0; i < 4; ++i)
    dwords[i] = _mm512_inserti64x4(_mm512_castsi256_si512(halves[0][i]), halves[1][i], 1);
}

/// The same with the bytes at `offset` of weights on their way from memory.
inline void load_dwords(const PanelBlocks& blocks, size_t offset, __m512i* dwords) {
  blocks.prefetch.advance_256();
  transpose_dwords(blocks.first + offset, blocks.row_bytes, dwords);
}

/// The binary16 at `offset` of each row, as floats. It goes through memory: 16 scalar loads leave
/// the vector units free, and the value is needed late.
inline __m512 load_f16(const PanelBlocks& blocks, size_t offset) {
  alignas(32) uint16_t bits[kPanelRows];
  for (size_t r = 0; r < kPanelRows; ++r)
    std::memcpy(bits + r, blocks.first + offset + r * blocks.row_bytes, sizeof bits[r]);
  return _mm512_cvtph_ps(_mm256_load_si256(reinterpret_cast<const __m256i*>(bits)));
}

/// Four activations in every lane.
inline __m512i broadcast_4(const int8_t* q) {
  return _mm512_set1_epi32(load_integer<int32_t>(q));
}

/// Multiplies a run with one token, whose columns of the two halves are given. Each of kSums sums
/// takes an equal share of the columns. They advance side by side, to have more than one chain of
/// dependent instructions under way.
template <size_t kSums>
inline void multiply_run(const Run& run, const int8_t* const (&halves)[2], __m512i (&sums)[kSums]) {
  constexpr size_t kSumGroups = kRunGroups / kSums;
  for (size_t g = 0; g < kSumGroups; ++g) {
    for (size_t s = 0; s < kSums; ++s) {
      const size_t i = s * kSumGroups + g;
      const int8_t* x = halves[i / (kRunGroups / 2)] + i % (kRunGroups / 2) * kGroupColumns;
      sums[s] = _mm512_dpbusd_epi32(sums[s], run[i], broadcast_4(x));
    }
  }
}

}  // namespace
}  // namespace sluice::kernels::avx512
