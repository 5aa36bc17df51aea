// The two loops behind every quantised matmul of this folder and of i8mm/: one float lane per row,
// blocks in ascending order. A format gives the loops its arithmetic for one block.
//
// matvec, for one token, takes four rows, straight from where they lie. matmul unpacks a panel of
// eight rows once, chunk by chunk so that it stays in L1, and passes all tokens over it, four at a
// time in registers.
//
// A Format has
//   kElements, kBlockBytes       of one block
//   kActivationColumns           columns that share a scale of the activations
//   kChunk                       blocks unpacked at a time
//   PanelBlock                   eight rows of one block, unpacked
//   add_rows(blocks, x, acc)     acc + the block's terms for four rows
//   unpack(blocks, panel)        fills a PanelBlock
//   add_panel<N>(panel, x, acc)  acc[n] + the block's terms for eight rows and token n < N
#pragma once

#include "kernels/kernels.h"
#include "kernels/neon/lanes.h"
#include "quant/blocks.h"

namespace sluice::kernels::neon {
namespace {

constexpr size_t kPanelRows = 2 * kLanes;
constexpr size_t kTokenTile = 4;  ///< tokens that pass over a panel together

/// One float for each row of a panel.
struct PanelFloats {
  float32x4_t four[2];
};

inline PanelFloats load_panel_floats(const float* from, size_t count) {
  return {{load_some(from, count), load_some(from + kLanes, left(kLanes, count))}};
}

inline void store_panel_floats(float* to, const PanelFloats& v, size_t count) {
  store_some(to, v.four[0], count);
  store_some(to + kLanes, v.four[1], left(kLanes, count));
}

/// The binary16 at `offset` of four blocks, as floats.
inline float32x4_t half_of_each(const std::byte* const* blocks, size_t offset) {
  const uint16x4_t halves = {
      load_integer<uint16_t>(blocks[0] + offset), load_integer<uint16_t>(blocks[1] + offset),
      load_integer<uint16_t>(blocks[2] + offset), load_integer<uint16_t>(blocks[3] + offset)};
  return vcvt_f32_f16(vreinterpret_f16_u16(halves));
}

/// The byte at `offset` of four blocks, as integers.
inline uint32x4_t byte_of_each(const std::byte* const* blocks, size_t offset) {
  const auto byte = [&](size_t r) { return uint32_t{load_integer<uint8_t>(blocks[r] + offset)}; };
  return uint32x4_t{byte(0), byte(1), byte(2), byte(3)};
}

/// An activation row from some block on.
struct Activations {
  const int8_t* q;
  const int16_t* sum16;
  const float* scale;

  template <class Format>
  Activations at(size_t block) const {
    constexpr size_t kElements = Format::kElements;
    return {q + block * kElements, sum16 + block * (kElements / 16),
            scale + block * (kElements / Format::kActivationColumns)};
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
  const std::byte* sum16 =
      scale + pad_to_64(args.cols / Format::kActivationColumns * sizeof(float));
  return {reinterpret_cast<const int8_t*>(q), reinterpret_cast<const int16_t*>(sum16),
          reinterpret_cast<const float*>(scale)};
}

/// kRows rows of the weights. Where fewer are left the last one is repeated; what comes of the
/// copies is not stored.
template <size_t kRows>
class Rows {
 public:
  Rows(const MatmulArgs& args, size_t first_row) {
    const size_t rows_left = args.row_count - first_row;
    count_ = rows_left < kRows ? rows_left : kRows;
    for (size_t r = 0; r < kRows; ++r)
      rows_[r] = args.weights + (first_row + (r < count_ ? r : count_ - 1)) * args.row_bytes;
  }

  /// Where the rows' blocks begin.
  template <class Format>
  void find_blocks(size_t block, const std::byte** blocks) const {
    for (size_t r = 0; r < kRows; ++r) blocks[r] = rows_[r] + block * Format::kBlockBytes;
  }

  size_t count() const { return count_; }

 private:
  const std::byte* rows_[kRows];
  size_t count_;
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

/// Passes the tokens [t, t + N) over a chunk. Between chunks the accumulators rest in args.out.
template <class Format, size_t N>
inline void matmul_tile(const MatmulArgs& args, const Chunk<Format>& chunk, size_t t) {
  Activations x[N];
  PanelFloats acc[N] = {};
  float* out[N];
  for (size_t n = 0; n < N; ++n) {
    x[n] = activations<Format>(args, t + n).template at<Format>(chunk.first);
    out[n] = args.out + (t + n) * args.out_stride + chunk.row;
    if (chunk.first != 0) acc[n] = load_panel_floats(out[n], chunk.row_count);
  }
  for (size_t b = 0; b < chunk.count; ++b) {
    Format::template add_panel<N>(chunk.panel[b], x, acc);
    for (size_t n = 0; n < N; ++n) x[n] = x[n].template at<Format>(1);
  }
  for (size_t n = 0; n < N; ++n) store_panel_floats(out[n], acc[n], chunk.row_count);
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
  for (size_t r = 0; r < args.row_count; r += kPanelRows) {
    const Rows<kPanelRows> panel(args, r);
    for (size_t first = 0; first < block_count; first += Format::kChunk) {
      const size_t blocks_left = block_count - first;
      const size_t count = blocks_left < Format::kChunk ? blocks_left : Format::kChunk;
      for (size_t b = 0; b < count; ++b) {
        const std::byte* blocks[kPanelRows];
        panel.find_blocks<Format>(first + b, blocks);
        Format::unpack(blocks, unpacked[b]);
      }
      matmul_chunk<Format>(args, {unpacked, first, count, r, panel.count()});
    }
  }
}

template <class Format>
inline void matvec(const MatmulArgs& args) {
  if (args.token_count != 1) return matmul<Format>(args);
  const size_t block_count = args.cols / Format::kElements;
  const Activations x = activations<Format>(args, 0);
  for (size_t r = 0; r < args.row_count; r += kLanes) {
    const Rows<kLanes> rows(args, r);
    float32x4_t acc = vdupq_n_f32(0.0f);
    for (size_t b = 0; b < block_count; ++b) {
      const std::byte* blocks[kLanes];
      rows.find_blocks<Format>(b, blocks);
      acc = Format::add_rows(blocks, x.at<Format>(b), acc);
    }
    store_some(args.out + r, acc, rows.count());
  }
}

}  // namespace
}  // namespace sluice::kernels::neon
