// How the formats in small blocks get at their codes: 32 columns of eight rows at a time, straight
// into the order of a panel (panel.h). Private to the including file.
#pragma once

#include "kernels/avx2/panel.h"
#include "quant/blocks.h"

namespace sluice::kernels::avx2 {
namespace {

/// 32 columns of a panel.
struct Codes {
  __m256i q[4][2];  ///< [8 columns][half A, B]
};

/// 16 packed bytes of each of eight rows.
struct Pieces {
  __m256i bytes[2][2];  ///< [8 bytes][half A, B]
};

inline Pieces load_pieces(const std::byte* const* blocks, size_t offset) {
  __m256i pair[4];
#pragma GCC unroll 4
  for (size_t j = 0; j < 4; ++j) pair[j] = load16_each(blocks[j] + offset, blocks[j + 4] + offset);
  Pieces pieces;
  pieces.bytes[0][0] = _mm256_unpacklo_epi64(pair[0], pair[1]);
  pieces.bytes[0][1] = _mm256_unpacklo_epi64(pair[2], pair[3]);
  pieces.bytes[1][0] = _mm256_unpackhi_epi64(pair[0], pair[1]);
  pieces.bytes[1][1] = _mm256_unpackhi_epi64(pair[2], pair[3]);
  return pieces;
}

inline __m256i high_half_bytes(__m256i bytes) {
  return low_half_bytes(_mm256_srli_epi16(bytes, 4));
}

/// The half bytes of 16 bytes: all low halves before the high ones.
inline void half_bytes(const std::byte* const* blocks, size_t offset, Codes& to) {
  const Pieces pieces = load_pieces(blocks, offset);
#pragma GCC unroll 2
  for (size_t i = 0; i < 2; ++i) {
#pragma GCC unroll 2
    for (size_t half = 0; half < 2; ++half) {
      to.q[i][half] = low_half_bytes(pieces.bytes[i][half]);
      to.q[2 + i][half] = high_half_bytes(pieces.bytes[i][half]);
    }
  }
}

/// Sets `value` in the codes whose bit is set among the 32 at `offset`.
inline void add_bits(const std::byte* const* blocks, size_t offset, char value, Codes& to) {
  const auto bits = [&](size_t r) { return load_integer<int>(blocks[r] + offset); };
  const __m256i rows =
      _mm256_setr_epi32(bits(0), bits(1), bits(2), bits(3), bits(4), bits(5), bits(6), bits(7));
  const __m256i bit_of = _mm256_set1_epi64x(static_cast<int64_t>(0x8040201008040201));
#pragma GCC unroll 4
  for (size_t i = 0; i < 4; ++i) {
#pragma GCC unroll 2
    for (size_t half = 0; half < 2; ++half) {
      const auto eightfold = [](size_t byte) {
        return static_cast<long long>(0x0101010101010101u * byte);
      };
      const long long first = eightfold(8 * half + i);
      const long long second = eightfold(8 * half + 4 + i);
      const __m256i spread =
          _mm256_shuffle_epi8(rows, _mm256_setr_epi64x(first, second, first, second));
      const __m256i set = _mm256_cmpeq_epi8(_mm256_and_si256(spread, bit_of), bit_of);
      to.q[i][half] =
          _mm256_or_si256(to.q[i][half], _mm256_and_si256(set, _mm256_set1_epi8(value)));
    }
  }
}

/// The codes of two bits in 8 bytes, four in a byte, lowest first.
inline void two_bits(const std::byte* const* blocks, size_t offset, Codes& to) {
  const auto eight = [&](size_t r) { return load_integer<long long>(blocks[r] + offset); };
  const __m256i rows[2] = {_mm256_setr_epi64x(eight(0), eight(1), eight(4), eight(5)),
                           _mm256_setr_epi64x(eight(2), eight(3), eight(6), eight(7))};
#pragma GCC unroll 4
  for (size_t i = 0; i < 4; ++i) {
    // Each byte comes to the bottom of four, where copies of it move up by 6, 12 and 18 bits.
    const auto dwords = [](size_t byte) {
      return static_cast<long long>(0x8080800180808000u + 0x0000000100000001u * byte);
    };
    const long long first = dwords(2 * i);
    const long long second = dwords(8 + 2 * i);
    const __m256i shuffle = _mm256_setr_epi64x(first, second, first, second);
#pragma GCC unroll 2
    for (size_t half = 0; half < 2; ++half) {
      const __m256i byte = _mm256_shuffle_epi8(rows[half], shuffle);
      const __m256i two = _mm256_or_si256(byte, _mm256_slli_epi32(byte, 12));
      const __m256i four = _mm256_or_si256(two, _mm256_slli_epi32(two, 6));
      to.q[i][half] = _mm256_and_si256(four, _mm256_set1_epi8(3));
    }
  }
}

/// Replaces each code by the table's byte.
inline void look_up(__m128i table, Codes& codes) {
  const __m256i twice = _mm256_broadcastsi128_si256(table);
#pragma GCC unroll 4
  for (auto& step : codes.q) {
    step[0] = _mm256_shuffle_epi8(twice, step[0]);
    step[1] = _mm256_shuffle_epi8(twice, step[1]);
  }
}

}  // namespace
}  // namespace sluice::kernels::avx2
