// F32, F16 and BF16 weights against float activations. A dot product is 16 lane sums, four
// registers, added along the row and folded at its end (sum16 in kernels.h).
//
// Two rows meet three tokens in 24 registers of sums. Around that, a block of eight rows and three
// tokens passes over the columns in chunks, so that both sides stay in L1; between chunks the lane
// sums rest in memory.
#include "kernels/neon/lanes.h"
#include "kernels/neon/neon.h"

namespace sluice::kernels::neon {
namespace {

constexpr size_t kRowTile = 2;
constexpr size_t kTokenTile = 3;
constexpr size_t kRowBlock = 4 * kRowTile;
constexpr size_t kChunkColumns = 512;

struct F32 {
  static constexpr size_t kBytes = 4;
  static float32x4_t load(const std::byte* from) { return vreinterpretq_f32_u8(load16(from)); }
};

struct F16 {
  static constexpr size_t kBytes = 2;
  static float32x4_t load(const std::byte* from) {
    return vcvt_f32_f16(vreinterpret_f16_u8(load8(from)));
  }
};

struct BF16 {
  static constexpr size_t kBytes = 2;
  static float32x4_t load(const std::byte* from) {
    return vreinterpretq_f32_u32(vshll_n_u16(vreinterpret_u16_u8(load8(from)), 16));
  }
};

/// Some rows, some tokens, and their lane sums.
struct Block {
  const std::byte* weights[kRowBlock];  ///< a short block repeats its last row
  const float* x[kTokenTile];
  size_t row_count;
  float sums[kRowBlock][kTokenTile][16];
};

struct Columns {
  size_t first;
  size_t end;  ///< of whole groups of 16
};

/// Adds the products of two rows with N tokens to their lane sums.
template <class W, size_t N>
inline void add_tile(Block& block, Columns columns, size_t r) {
  float32x4_t sums[kQuarters][kRowTile][N];
  for (size_t quarter = 0; quarter < kQuarters; ++quarter)
    for (size_t i = 0; i < kRowTile; ++i)
      for (size_t n = 0; n < N; ++n)
        sums[quarter][i][n] = vld1q_f32(block.sums[r + i][n] + kLanes * quarter);
  for (size_t c = columns.first; c < columns.end; c += 16) {
#pragma GCC unroll 4
    for (size_t quarter = 0; quarter < kQuarters; ++quarter) {
      const size_t at = c + kLanes * quarter;
      const float32x4_t w0 = W::load(block.weights[r] + at * W::kBytes);
      const float32x4_t w1 = W::load(block.weights[r + 1] + at * W::kBytes);
#pragma GCC unroll 3
      for (size_t n = 0; n < N; ++n) {
        const float32x4_t x = vld1q_f32(block.x[n] + at);
        sums[quarter][0][n] = vfmaq_f32(sums[quarter][0][n], w0, x);
        sums[quarter][1][n] = vfmaq_f32(sums[quarter][1][n], w1, x);
      }
    }
  }
  for (size_t quarter = 0; quarter < kQuarters; ++quarter)
    for (size_t i = 0; i < kRowTile; ++i)
      for (size_t n = 0; n < N; ++n)
        vst1q_f32(block.sums[r + i][n] + kLanes * quarter, sums[quarter][i][n]);
}

/// Adds the last, incomplete group of 16. Lanes beyond it stay as they are, even a −0.
template <class W>
inline void add_tail(const std::byte* weights, const float* x, size_t count, float* sums) {
  std::byte w[16 * W::kBytes] = {};
  __builtin_memcpy(w, weights, count * W::kBytes);
  for (size_t at = 0; at < count; at += kLanes) {
    const float32x4_t sum = vld1q_f32(sums + at);
    const float32x4_t products = W::load(w + at * W::kBytes);
    store_some(sums + at, vfmaq_f32(sum, products, load_some(x + at, count - at)), count - at);
  }
}

/// out[n · out_stride + r] for the rows and N tokens of a block.
template <class W, size_t N>
inline void compute_block(Block& block, size_t cols, float* out, size_t out_stride) {
  __builtin_memset(block.sums, 0, sizeof block.sums);
  const size_t whole = cols / 16 * 16;
  for (size_t c = 0; c < whole; c += kChunkColumns) {
    const Columns columns = {c, c + kChunkColumns < whole ? c + kChunkColumns : whole};
    for (size_t r = 0; r < block.row_count; r += kRowTile) add_tile<W, N>(block, columns, r);
  }
  for (size_t r = 0; r < block.row_count; ++r) {
    for (size_t n = 0; n < N; ++n) {
      float* sums = block.sums[r][n];
      if (whole < cols)
        add_tail<W>(block.weights[r] + whole * W::kBytes, block.x[n] + whole, cols - whole, sums);
      const float32x4_t quarters[kQuarters] = {vld1q_f32(sums), vld1q_f32(sums + 4),
                                               vld1q_f32(sums + 8), vld1q_f32(sums + 12)};
      out[n * out_stride + r] = fold_lanes(quarters);
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
  for (size_t r = 0; r < args.row_count; r += kRowBlock) {
    const size_t rows_left = args.row_count - r;
    block.row_count = rows_left < kRowBlock ? rows_left : kRowBlock;
    for (size_t i = 0; i < kRowBlock; ++i) {
      const size_t row = r + (i < block.row_count ? i : block.row_count - 1);
      block.weights[i] = args.weights + row * args.row_bytes;
    }
    for (size_t t = 0; t < args.token_count; t += kTokenTile) {
      float* out = args.out + t * args.out_stride + r;
      const size_t tokens_left = args.token_count - t;
      for (size_t n = 0; n < kTokenTile && n < tokens_left; ++n)
        block.x[n] = activation_row(args, t + n);
      static_assert(kTokenTile == 3);
      switch (tokens_left) {
        case 1:
          compute_block<W, 1>(block, args.cols, out, args.out_stride);
          break;
        case 2:
          compute_block<W, 2>(block, args.cols, out, args.out_stride);
          break;
        default:
          compute_block<W, 3>(block, args.cols, out, args.out_stride);
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

}  // namespace sluice::kernels::neon
