// F32, F16 and BF16 weights against float activations: each sum is one register of 16 lanes (the
// sum16 of kernels.h), folded at the end.
//
// A tile of rows and tokens is summed together, 16 sums at most, so that every weight and every
// activation that is loaded serves several sums; a transposing tree folds all of them at once. At
// an edge the last row or token stands in for the missing ones and its copies are not stored.
#include <cstring>

#include "kernels/avx512/avx512.h"
#include "kernels/avx512/lanes.h"
#include "kernels/avx512/prefetch.h"

namespace sluice::kernels::avx512 {
namespace {

struct F32 {
  using Element = float;
  static inline __m512 load(const float* w) { return _mm512_loadu_ps(w); }
  static inline __m512 load(const float* w, __mmask16 lanes) {
    return _mm512_maskz_loadu_ps(lanes, w);
  }
};

struct F16 {
  using Element = uint16_t;
  static inline __m512 load(const uint16_t* w) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(w)));
  }
  static inline __m512 load(const uint16_t* w, __mmask16 lanes) {
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(lanes, w));
  }
};

struct BF16 {
  using Element = uint16_t;
  static inline __m512 widen(__m256i bits) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
  }
  static inline __m512 load(const uint16_t* w) {
    return widen(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(w)));
  }
  static inline __m512 load(const uint16_t* w, __mmask16 lanes) {
    return widen(_mm256_maskz_loadu_epi16(lanes, w));
  }
};

/// Folds 16 registers by lane i += i + 8, i + 4, i + 2, i + 1: lane k of the result is the fold of
/// sums[k]. At each level the folds of two registers share one.
inline __m512 fold_16(const __m512 (&sums)[16]) {
  __m512 eights[8];  // the sums k and k + 4; from eights[4] on, k + 4 and k + 8
  for (size_t k = 0; k < 8; ++k) {
    const __m512 a = sums[k < 4 ? k : k + 4];
    const __m512 b = sums[k < 4 ? k + 4 : k + 8];
    eights[k] = _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xee));
  }
  __m512 fours[4];  // the sums k, k + 4, k + 8, k + 12
  for (size_t k = 0; k < 4; ++k) {
    const __m512 a = eights[k];
    const __m512 b = eights[k + 4];
    fours[k] = _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd));
  }
  __m512 twos[2];
  for (size_t k = 0; k < 2; ++k) {
    const __m512 a = fours[2 * k];
    const __m512 b = fours[2 * k + 1];
    twos[k] = _mm512_add_ps(_mm512_shuffle_ps(a, b, 0x44), _mm512_shuffle_ps(a, b, 0xee));
  }
  return _mm512_add_ps(_mm512_shuffle_ps(twos[0], twos[1], 0x88),
                       _mm512_shuffle_ps(twos[0], twos[1], 0xdd));
}

inline const float* activation_row(const MatmulArgs& args, size_t token) {
  const size_t row =
      args.token_rows != nullptr ? static_cast<size_t>(args.token_rows[token]) : token;
  return reinterpret_cast<const float*>(args.activations + row * args.activation_stride);
}

/// The rows and tokens from here on, at most kRows and kTokens.
template <class Format, size_t kRows, size_t kTokens>
void multiply_tile(const MatmulArgs& args, size_t first_row, size_t first_token,
                   Prefetch& prefetch) {
  static_assert(kRows * kTokens <= 16);
  constexpr bool kStreaming = kTokens <= 2;  // the weights' way from memory is what takes the time
  using Element = typename Format::Element;
  const size_t row_count = args.row_count - first_row < kRows ? args.row_count - first_row : kRows;
  const Element* w[kRows];
  const float* x[kTokens];
  for (size_t r = 0; r < kRows; ++r) {
    const size_t row = first_row + (r < row_count ? r : row_count - 1);
    w[r] = reinterpret_cast<const Element*>(args.weights + row * args.row_bytes);
  }
  for (size_t t = 0; t < kTokens; ++t) {
    const size_t token = first_token + t;
    x[t] = activation_row(args, token < args.token_count ? token : args.token_count - 1);
  }
  if constexpr (kStreaming)
    prefetch.start_rows(args.weights + (first_row + row_count) * args.row_bytes);
  __m512 sums[16];  // [token][row]
  for (__m512& sum : sums) sum = _mm512_setzero_ps();
  size_t i = 0;
  for (; i + kLanes <= args.cols; i += kLanes) {
    if constexpr (kStreaming)
      for (size_t bytes = 0; bytes < kRows * kLanes * sizeof(Element); bytes += 256)
        prefetch.advance_256();
    __m512 weights[kRows];
    for (size_t r = 0; r < kRows; ++r) weights[r] = Format::load(w[r] + i);
    for (size_t t = 0; t < kTokens; ++t) {
      const __m512 activations = _mm512_loadu_ps(x[t] + i);
      for (size_t r = 0; r < kRows; ++r)
        sums[t * kRows + r] = _mm512_fmadd_ps(weights[r], activations, sums[t * kRows + r]);
    }
  }
  if (const __mmask16 lanes = lanes_left(i, args.cols); lanes != 0) {
    for (size_t t = 0; t < kTokens; ++t)
      for (size_t r = 0; r < kRows; ++r)
        sums[t * kRows + r] = _mm512_mask3_fmadd_ps(Format::load(w[r] + i, lanes),
                                                    _mm512_maskz_loadu_ps(lanes, x[t] + i),
                                                    sums[t * kRows + r], lanes);
  }
  alignas(64) float folded[16];
  _mm512_store_ps(folded, fold_16(sums));
  for (size_t t = 0; t < kTokens && first_token + t < args.token_count; ++t)
    std::memcpy(args.out + (first_token + t) * args.out_stride + first_row, folded + t * kRows,
                row_count * sizeof(float));
}

/// One row's sum for one token.
template <class Format>
inline __m512 multiply_row(const typename Format::Element* w, const float* x, size_t cols) {
  __m512 sum = _mm512_setzero_ps();
  size_t i = 0;
  for (; i + kLanes <= cols; i += kLanes)
    sum = _mm512_fmadd_ps(Format::load(w + i), _mm512_loadu_ps(x + i), sum);
  if (const __mmask16 lanes = lanes_left(i, cols); lanes != 0)
    sum = _mm512_mask3_fmadd_ps(Format::load(w + i, lanes), _mm512_maskz_loadu_ps(lanes, x + i),
                                sum, lanes);
  return sum;
}

/// One token, row after row: the weights pass by in the order in which they lie, which the
/// hardware's prefetcher follows better than any instruction could lead it.
template <class Format>
void multiply_rows(const MatmulArgs& args) {
  constexpr size_t kRows = 16;
  const float* x = activation_row(args, 0);
  for (size_t first = 0; first < args.row_count; first += kRows) {
    const size_t left = args.row_count - first;
    const size_t count = left < kRows ? left : kRows;
    __m512 sums[kRows];
    for (size_t r = 0; r < kRows; ++r) {
      const std::byte* row = args.weights + (first + (r < count ? r : 0)) * args.row_bytes;
      sums[r] = multiply_row<Format>(reinterpret_cast<const typename Format::Element*>(row), x,
                                     args.cols);
    }
    const auto rows = static_cast<__mmask16>((1u << count) - 1);
    _mm512_mask_storeu_ps(args.out + first, rows, fold_16(sums));
  }
}

/// A row is one chain of sums, and only those of a row and the next are in flight. Where rows are
/// long and their elements short, that is too few, and rows side by side win: F16 from RAM makes 35
/// GB/s with 768 columns and 33 with 2048 (side by side 21 and 28), but 23 with 4096 (27), on one
/// core of an EPYC Genoa, 2026.
template <class Format>
constexpr bool row_by_row(size_t cols) {
  return sizeof(typename Format::Element) == sizeof(float) || cols <= 2048;
}

template <class Format>
void multiply(const MatmulArgs& args) {
  if (args.token_count == 1 && row_by_row<Format>(args.cols)) return multiply_rows<Format>(args);
  constexpr size_t kRows = 4;
  constexpr size_t kTokens = 4;
  Prefetch prefetch(args.weights, args.row_count * args.row_bytes);
  for (size_t r = 0; r < args.row_count; r += 2 * kRows) {
    if (args.token_count == 1) {
      multiply_tile<Format, 2 * kRows, 1>(args, r, 0, prefetch);
    } else if (args.token_count == 2) {
      multiply_tile<Format, 2 * kRows, 2>(args, r, 0, prefetch);
    } else {
      for (size_t t = 0; t < args.token_count; t += kTokens) {
        multiply_tile<Format, kRows, kTokens>(args, r, t, prefetch);
        if (r + kRows < args.row_count)
          multiply_tile<Format, kRows, kTokens>(args, r + kRows, t, prefetch);
      }
    }
  }
}

}  // namespace

void matmul_f32(const MatmulArgs& args) {
  multiply<F32>(args);
}
void matmul_f16(const MatmulArgs& args) {
  multiply<F16>(args);
}
void matmul_bf16(const MatmulArgs& args) {
  multiply<BF16>(args);
}

}  // namespace sluice::kernels::avx512
