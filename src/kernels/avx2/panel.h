// How eight weight rows lie side by side once unpacked, and the pieces that unpacking is made of.
//
// A panel keeps eight rows in two halves, A = rows 0, 1 | 4, 5 and B = rows 2, 3 | 6, 7 (the bar is
// the middle of a register). A row has eight bytes of each register: eight columns of codes, which
// meet eight broadcast bytes of activations, or four int16 of scales. Sums then have two int32 per
// row, and add_pairs(A, B) is rows 0 … 7 in order. Rows 0 and 4 share a register because a block's
// 16 bytes can be loaded into either half: one unpack instruction per register is all it takes.
#pragma once

#include "kernels/avx2/intrinsics.h"

namespace sluice::kernels::avx2 {
namespace {

constexpr size_t kPanelRows = 8;

/// 16 bytes from each of two places.
inline __m256i load16_each(const std::byte* low, const std::byte* high) {
  return _mm256_inserti128_si256(_mm256_castsi128_si256(load16(low)), load16(high), 1);
}

/// The binary16 at `offset` of eight blocks, as floats.
inline __m256 half_of_each(const std::byte* const* blocks, size_t offset) {
  const auto half = [&](size_t r) {
    return static_cast<short>(load_integer<uint16_t>(blocks[r] + offset));
  };
  return _mm256_cvtph_ps(
      _mm_setr_epi16(half(0), half(1), half(2), half(3), half(4), half(5), half(6), half(7)));
}

/// The byte at `offset` of eight blocks, in the low half.
inline __m128i byte_of_each(const std::byte* const* blocks, size_t offset) {
  const auto byte = [&](size_t r) { return load_integer<char>(blocks[r] + offset); };
  return _mm_setr_epi8(byte(0), byte(1), byte(2), byte(3), byte(4), byte(5), byte(6), byte(7), 0, 0,
                       0, 0, 0, 0, 0, 0);
}

/// Puts 8-byte pieces of rows side by side in A, B, A, B: pair[j] has 16 bytes of row j and 16 of
/// row j + 4; the first A and B take the first eight of each, the second ones the others.
inline void interleave(const __m256i* pair, void* to) {
  auto* registers = static_cast<__m256i*>(to);
  _mm256_storeu_si256(registers, _mm256_unpacklo_epi64(pair[0], pair[1]));
  _mm256_storeu_si256(registers + 1, _mm256_unpacklo_epi64(pair[2], pair[3]));
  _mm256_storeu_si256(registers + 2, _mm256_unpackhi_epi64(pair[0], pair[1]));
  _mm256_storeu_si256(registers + 3, _mm256_unpackhi_epi64(pair[2], pair[3]));
}

/// The same with one register per row, of which `piece` is the half to take.
inline void interleave_rows(const __m256i* rows, size_t piece, void* to) {
  __m256i pair[4];
  for (size_t j = 0; j < 4; ++j)
    pair[j] = piece == 0 ? _mm256_permute2x128_si256(rows[j], rows[j + 4], 0x20)
                         : _mm256_permute2x128_si256(rows[j], rows[j + 4], 0x31);
  interleave(pair, to);
}

}  // namespace
}  // namespace sluice::kernels::avx2
