// F32, F16 and BF16 weights against float activations. A dot product is 16 lane sums, two
// registers, added along the row and folded at its end (sum16 in kernels.h).
//
// Two rows meet three tokens in twelve registers of sums. Around that, a block of eight rows and
// three tokens passes over the columns in chunks, so that both sides stay in L1; between chunks the
// lane sums rest in memory. (Twelve tokens to a block were slower by a tenth on an EPYC Genoa,
// 2026: rows whose distance is a power of two compete for the same few lines of L1.)
#include "kernels/avx2/avx2.h"
#include "kernels/avx2/lanes.h"

namespace sluice::kernels::avx2 {
namespace {

constexpr size_t kRowTile = 2;
constexpr size_t kTokenTile = 3;
constexpr size_t kRowBlock = 4 * kRowTile;
constexpr size_t kChunkColumns = 512;

struct F32 {
  static constexpr size_t kBytes = 4;
  static __m256 load(const std::byte* from) {
    return _mm256_loadu_ps(reinterpret_cast<const float*>(from));
  }
};

struct F16 {
  static constexpr size_t kBytes = 2;
  static __m256 load(const std::byte* from) { return _mm256_cvtph_ps(load16(from)); }
};

struct BF16 {
  static constexpr size_t kBytes = 2;
  static __m256 load(const std::byte* from) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(load16(from)), 16));
  }
};

/// Some rows, some tokens, and their lane sums.
struct Block {
  const std::byte* weights[kRowBlock];  ///< a short block repeats its last row
  const float* x[kTokenTile];
  size_t row_count;
  const std::byte* next_block;  ///< the row that follows
  alignas(32) float sums[kRowBlock][kTokenTile][16];
};

struct Columns {
  size_t first;
  size_t end;  ///< of whole groups of 16
};

/// Adds the products of two rows with N tokens to their lane sums.
template <class W, size_t N>
inline void add_tile(Block& block, Columns columns, size_t r) {
  __m256 sums[2][kRowTile][N];
  for (size_t half = 0; half < 2; ++half)
    for (size_t i = 0; i < kRowTile; ++i)
      for (size_t n = 0; n < N; ++n)
        sums[half][i][n] = _mm256_load_ps(block.sums[r + i][n] + kLanes * half);
  for (size_t c = columns.first; c < columns.end; c += 16) {
#pragma GCC unroll 2
    for (size_t half = 0; half < 2; ++half) {
      const size_t at = c + kLanes * half;
      __m256 w0 = W::load(block.weights[r] + at * W::kBytes);
      __m256 w1 = W::load(block.weights[r + 1] + at * W::kBytes);
      keep(w0);
      keep(w1);
#pragma GCC unroll 3
      for (size_t n = 0; n < N; ++n) {
        __m256 x = _mm256_loadu_ps(block.x[n] + at);
        keep(x);
        sums[half][0][n] = _mm256_fmadd_ps(w0, x, sums[half][0][n]);
        sums[half][1][n] = _mm256_fmadd_ps(w1, x, sums[half][1][n]);
      }
    }
  }
  for (size_t half = 0; half < 2; ++half)
    for (size_t i = 0; i < kRowTile; ++i)
      for (size_t n = 0; n < N; ++n)
        _mm256_store_ps(block.sums[r + i][n] + kLanes * half, sums[half][i][n]);
}

/// Adds the last, incomplete group of 16. Lanes beyond it stay as they are, even a −0.
template <class W>
inline void add_tail(const std::byte* weights, const float* x, size_t count, float* sums) {
  alignas(32) std::byte w[16 * W::kBytes] = {};
  __builtin_memcpy(w, weights, count * W::kBytes);
  for (size_t half = 0; half < 2; ++half) {
    const size_t left = count > kLanes * half ? count - kLanes * half : 0;
    const __m256i lanes = first_lanes(left);
    const __m256 sum = _mm256_load_ps(sums + kLanes * half);
    const __m256 xs = _mm256_maskload_ps(x + kLanes * half, lanes);
    const __m256 next = _mm256_fmadd_ps(W::load(w + kLanes * half * W::kBytes), xs, sum);
    _mm256_store_ps(sums + kLanes * half, _mm256_blendv_ps(sum, next, _mm256_castsi256_ps(lanes)));
  }
}

/// out[n · out_stride + r] for the rows and N tokens of a block.
template <class W, size_t N>
inline void compute_block(Block& block, size_t cols, Prefetch& prefetch, float* out,
                          size_t out_stride) {
  __builtin_memset(block.sums, 0, sizeof block.sums);
  const size_t whole = cols / 16 * 16;
  for (size_t c = 0; c < whole; c += kChunkColumns) {
    const Columns columns = {c, c + kChunkColumns < whole ? c + kChunkColumns : whole};
    const size_t row_bytes = (columns.end - c) * W::kBytes;
    for (size_t r = 0; r < block.row_count; r += kRowTile) {
      prefetch.reach(block.next_block + kRowBlock * c * W::kBytes + (r + kRowTile) * row_bytes);
      add_tile<W, N>(block, columns, r);
    }
  }
  for (size_t r = 0; r < block.row_count; ++r) {
    for (size_t n = 0; n < N; ++n) {
      float* sums = block.sums[r][n];
      if (whole < cols)
        add_tail<W>(block.weights[r] + whole * W::kBytes, block.x[n] + whole, cols - whole, sums);
      out[n * out_stride + r] = fold_lanes(_mm256_load_ps(sums), _mm256_load_ps(sums + kLanes));
    }
  }
}

inline const float* activation_row(const MatmulArgs& args, size_t t) {
  const size_t row = args.token_rows != nullptr ? static_cast<size_t>(args.token_rows[t]) : t;
  return reinterpret_cast<const float*>(args.activations + row * args.activation_stride);
}

template <class W>
inline void matmul_floats(const MatmulArgs& args) {
  Block block;
  Prefetch prefetch(args.weights, args.row_count * args.row_bytes);
  for (size_t r = 0; r < args.row_count; r += kRowBlock) {
    const size_t rows_left = args.row_count - r;
    block.row_count = rows_left < kRowBlock ? rows_left : kRowBlock;
    for (size_t i = 0; i < kRowBlock; ++i) {
      const size_t row = r + (i < block.row_count ? i : block.row_count - 1);
      block.weights[i] = args.weights + row * args.row_bytes;
    }
    block.next_block = args.weights + (r + kRowBlock) * args.row_bytes;
    for (size_t t = 0; t < args.token_count; t += kTokenTile) {
      float* out = args.out + t * args.out_stride + r;
      const size_t left = args.token_count - t;
      for (size_t n = 0; n < kTokenTile && n < left; ++n) block.x[n] = activation_row(args, t + n);
      static_assert(kTokenTile == 3);
      switch (left) {
        case 1:
          compute_block<W, 1>(block, args.cols, prefetch, out, args.out_stride);
          break;
        case 2:
          compute_block<W, 2>(block, args.cols, prefetch, out, args.out_stride);
          break;
        default:
          compute_block<W, 3>(block, args.cols, prefetch, out, args.out_stride);
          break;
      }
    }
  }
}

}  // namespace

void matmul_f32(const MatmulArgs& args) {
  matmul_floats<F32>(args);
}
void matmul_f16(const MatmulArgs& args) {
  matmul_floats<F16>(args);
}
void matmul_bf16(const MatmulArgs& args) {
  matmul_floats<BF16>(args);
}

}  // namespace sluice::kernels::avx2
