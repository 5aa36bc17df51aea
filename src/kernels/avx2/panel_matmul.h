// The two loops behind every quantised matmul of this ISA: rows in panels of eight, one float lane
// per row, blocks in ascending order. A format gives the loops its arithmetic for one block.
//
// matvec, for one token, reads the blocks of eight rows side by side, straight from where they lie.
// matmul unpacks a panel once, chunk by chunk so that it stays in L1, and passes all tokens over
// it, four at a time in registers. Eight rows are too many streams for the hardware's prefetcher;
// but panels follow each other in memory, so a cursor walks straight on, one panel ahead. Panels of
// short rows are too small a lead: with the least one below, weights of 512 and 768 columns came
// from RAM 8 to 24 % faster (one core of an EPYC Genoa, 2026). A lead of 12 KiB for 2048 columns of
// Q4_K in place of 9 lost as much.
//
// Tried and dropped for tokens left over by fours: tiles of 3 and 2 in place of 4 and 1. A lone
// token costs only a fifth more than one of four, and five took as long as before.
//
// A Format has
//   kElements, kBlockBytes       of one block, which may meet several of the activations
//   kChunk                       blocks unpacked at a time
//   PanelBlock                   eight rows of one block, unpacked
//   add_rows(blocks, x, acc)     acc + the block's terms for eight rows
//   unpack(blocks, panel)        fills a PanelBlock
//   add_panel<N>(panel, x, acc)  acc[n] + the block's terms for eight rows and token n < N
#pragma once

#include "kernels/avx2/lanes.h"
#include "kernels/avx2/panel.h"
#include "kernels/kernels.h"

namespace sluice::kernels::avx2 {
namespace {

constexpr size_t kTokenTile = 4;  ///< tokens that pass over a panel together

/// Columns of the activation block that meets weights in blocks of `elements`: super-blocks meet
/// their like, smaller blocks those of 32, or several of them.
constexpr size_t activation_block(size_t elements) {
  return elements == kSuperBlock ? kSuperBlock : kSmallBlock;
}

/// An activation row from some block on.
struct Activations {
  const int8_t* q;
  const int16_t* sum16;
  const float* scale;

  template <class Format>
  Activations at(size_t block) const {
    constexpr size_t kElements = Format::kElements;
    constexpr size_t kScales = kElements / activation_block(kElements);
    return {q + block * kElements, sum16 + block * (kElements / 16), scale + block * kScales};
  }
};

constexpr size_t pad_to_64(size_t bytes) {
  return (bytes + 63) / 64 * 64;
}

/// Token t's row. The offsets restate activation_layout (quant/activation.h).
template <class Format>
inline Activations activations(const MatmulArgs& args, size_t t) {
  const size_t row = args.token_rows != nullptr ? static_cast<size_t>(args.token_rows[t]) : t;
  const std::byte* q = args.activations + row * args.activation_stride;
  const std::byte* scale = q + pad_to_64(args.cols);
  constexpr size_t kScaleColumns = activation_block(Format::kElements);
  const std::byte* sum16 = scale + pad_to_64(args.cols / kScaleColumns * sizeof(float));
  return {reinterpret_cast<const int8_t*>(q), reinterpret_cast<const int16_t*>(sum16),
          reinterpret_cast<const float*>(scale)};
}

/// Eight rows of the weights, and the cursor that is one panel ahead of them. A short panel repeats
/// its last row; what comes of the copies is not stored.
class Panel {
 public:
  Panel(const MatmulArgs& args, size_t first_row)
      : ahead_(args.weights + first_row * args.row_bytes + lead_bytes(args.row_bytes)) {
    const size_t left = args.row_count - first_row;
    row_count_ = left < kPanelRows ? left : kPanelRows;
    for (size_t r = 0; r < kPanelRows; ++r)
      rows_[r] =
          args.weights + (first_row + (r < row_count_ ? r : row_count_ - 1)) * args.row_bytes;
  }

  /// Where the eight blocks begin.
  template <class Format>
  void find_blocks(size_t block, const std::byte** blocks, Prefetch& prefetch) const {
    for (size_t r = 0; r < kPanelRows; ++r) blocks[r] = rows_[r] + block * Format::kBlockBytes;
    prefetch.reach(ahead_ + (block + 1) * kPanelRows * Format::kBlockBytes);
  }

  size_t row_count() const { return row_count_; }

 private:
  static constexpr size_t lead_bytes(size_t row_bytes) {
    constexpr size_t kLeast = 6144;
    const size_t panel = kPanelRows * row_bytes;
    return panel > kLeast ? panel : kLeast;
  }

  const std::byte* rows_[kPanelRows];
  const std::byte* ahead_;
  size_t row_count_;
};

/// Blocks [first, first + count) of the panel whose first row is `row`, unpacked.
template <class Format>
struct Chunk {
  const typename Format::PanelBlock* panel;
  size_t first;
  size_t count;
  size_t row;
  size_t row_count;
};

/// Σ q·x over the first 8 · kSteps columns of half A or B of unpacked codes, two lanes per row.
/// REQUIRES: kSteps pair sums fit an int16.
template <size_t kSteps, size_t N>
inline void sum_codes(const uint8_t (*codes)[2][32], size_t half, const Activations* x,
                      __m256i* sums) {
  __m256i pairs[N];
#pragma GCC unroll 4
  for (size_t i = 0; i < kSteps; ++i) {
    const __m256i q = load32(codes[i][half]);
#pragma GCC unroll 4
    for (size_t n = 0; n < N; ++n) {
      const __m256i products = _mm256_maddubs_epi16(q, broadcast8(x[n].q + 8 * i));
      pairs[n] = i == 0 ? products : _mm256_add_epi16(pairs[n], products);
      keep(pairs[n]);
    }
  }
#pragma GCC unroll 4
  for (size_t n = 0; n < N; ++n) sums[n] = widen_pairs(pairs[n]);
}

/// Passes the tokens [t, t + N) over a chunk. Between chunks the accumulators rest in args.out.
template <class Format, size_t N>
inline void matmul_tile(const MatmulArgs& args, const Chunk<Format>& chunk, size_t t) {
  Activations x[N];
  __m256 acc[N];
  float* out[N];
  for (size_t n = 0; n < N; ++n) {
    x[n] = activations<Format>(args, t + n).template at<Format>(chunk.first);
    out[n] = args.out + (t + n) * args.out_stride + chunk.row;
    acc[n] = chunk.first == 0 ? _mm256_setzero_ps() : load_some(out[n], chunk.row_count);
  }
  for (size_t b = 0; b < chunk.count; ++b) {
    Format::template add_panel<N>(chunk.panel[b], x, acc);
    for (size_t n = 0; n < N; ++n) x[n] = x[n].template at<Format>(1);
  }
  for (size_t n = 0; n < N; ++n) store_some(out[n], acc[n], chunk.row_count);
}

template <class Format>
inline void matmul_chunk(const MatmulArgs& args, const Chunk<Format>& chunk) {
  size_t t = 0;
  for (; t + kTokenTile <= args.token_count; t += kTokenTile)
    matmul_tile<Format, kTokenTile>(args, chunk, t);
  static_assert(kTokenTile == 4);
  switch (args.token_count - t) {
    case 3:
      return matmul_tile<Format, 3>(args, chunk, t);
    case 2:
      return matmul_tile<Format, 2>(args, chunk, t);
    case 1:
      return matmul_tile<Format, 1>(args, chunk, t);
  }
}

template <class Format>
inline void matmul(const MatmulArgs& args) {
  const size_t block_count = args.cols / Format::kElements;
  typename Format::PanelBlock unpacked[Format::kChunk];
  Prefetch prefetch(args.weights, args.row_count * args.row_bytes);
  for (size_t r = 0; r < args.row_count; r += kPanelRows) {
    const Panel panel(args, r);
    for (size_t first = 0; first < block_count; first += Format::kChunk) {
      const size_t left = block_count - first;
      const size_t count = left < Format::kChunk ? left : Format::kChunk;
      for (size_t b = 0; b < count; ++b) {
        const std::byte* blocks[kPanelRows];
        panel.find_blocks<Format>(first + b, blocks, prefetch);
        Format::unpack(blocks, unpacked[b]);
      }
      matmul_chunk<Format>(args, {unpacked, first, count, r, panel.row_count()});
    }
  }
}

/// For one token. From two on it paid to unpack: Q4_K weights passed two tokens at 10 GB/s that
/// way, at 8 if each panel was read twice (one core of an EPYC Genoa, 2026, before k_header.h dealt
/// with eight headers together; one token: 17, unpacked 11).
template <class Format>
inline void matvec(const MatmulArgs& args) {
  if (args.token_count != 1) return matmul<Format>(args);
  const size_t block_count = args.cols / Format::kElements;
  const Activations x = activations<Format>(args, 0);
  Prefetch prefetch(args.weights, args.row_count * args.row_bytes);
  for (size_t r = 0; r < args.row_count; r += kPanelRows) {
    const Panel panel(args, r);
    __m256 acc = _mm256_setzero_ps();
    for (size_t b = 0; b < block_count; ++b) {
      const std::byte* blocks[kPanelRows];
      panel.find_blocks<Format>(b, blocks, prefetch);
      acc = Format::add_rows(blocks, x.at<Format>(b), acc);
    }
    store_some(args.out + r, acc, panel.row_count());
  }
}

}  // namespace
}  // namespace sluice::kernels::avx2
