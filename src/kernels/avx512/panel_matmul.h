// The loops around every quantised matmul: over chunks of tokens, panels of 16 rows and stretches
// of 256 columns. What happens to one stretch of one panel is the business of the family of
// formats (super_block.h, small_block.h).
//
// A token keeps one register of float sums per panel; the sums of kTokenChunk tokens and their
// activations of a stretch stay in the first-level cache. With many tokens the multiplications are
// what takes the time (163 of 236 possible 10^9 multiply-adds per second and core with Q4_K, EPYC
// Genoa, 2026). One token is better off with row_matvec.h, where a format has it.
//
// Tried and dropped: unpacking two panels into memory and passing them with tiles of six tokens, in
// the manner of a classic matrix product. Five percent faster from 128 tokens on, slower below 8,
// and twice the code.
#pragma once

#include "kernels/avx512/panel.h"
#include "kernels/kernels.h"

namespace sluice::kernels::avx512 {
namespace {

constexpr size_t kStretchColumns = 256;
constexpr size_t kTokenChunk = 64;

/// One token's part of a stretch.
struct Token {
  const int8_t* q;
  const int16_t* sum16;
  const float* scale;  ///< of the first block
};

/// What depends on a token's sums and not on the weights.
union alignas(64) TokenSums {
  int32_t start[16];  ///< −offset · Σx of the stretch's blocks or sub-blocks
  int32_t pair[8];    ///< see super_block.h
  float columns[8];   ///< Σx of the stretch's blocks of 32, see small_block.h
};

/// The tokens of one pass over the weights. Lanes are the panel's rows.
struct Chunk {
  size_t count;
  Token tokens[kTokenChunk];
  TokenSums sums[kTokenChunk];
  __m512i totals[kTokenChunk];  ///< scaled integer sums so far in this super-block
  __m512 acc[kTokenChunk];      ///< float sums so far
};

/// Hands out the stretches of up to 16 rows. If rows or columns are missing, what exists is copied
/// to a buffer of full size, so that nobody reads outside the weights.
template <size_t kStretchBytes>
class Panel {
 public:
  Panel(const std::byte* rows, size_t row_bytes, size_t row_count, Prefetch& prefetch)
      : rows_(rows),
        row_bytes_(row_bytes),
        row_count_(row_count < kPanelRows ? row_count : kPanelRows),
        prefetch_(prefetch) {
    prefetch.start_rows(rows + row_count_ * row_bytes);
  }

  PanelBlocks stretch(size_t offset, size_t bytes) {
    if (row_count_ == kPanelRows && bytes == kStretchBytes)
      return {rows_ + offset, row_bytes_, prefetch_};
    std::memset(copy_, 0, sizeof copy_);
    for (size_t r = 0; r < row_count_; ++r)
      std::memcpy(copy_ + r * kStretchBytes, rows_ + offset + r * row_bytes_, bytes);
    return {copy_, kStretchBytes, prefetch_};
  }

  /// The lanes that are rows.
  __mmask16 mask() const { return static_cast<__mmask16>((1u << row_count_) - 1); }

 private:
  const std::byte* rows_;
  size_t row_bytes_;
  size_t row_count_;
  Prefetch& prefetch_;
  std::byte copy_[kPanelRows * kStretchBytes];
};

/// Where the activations of tokens lie; quant/activation.h restated.
template <size_t kBlockColumns>
class TokenRows {
 public:
  explicit TokenRows(const MatmulArgs& args)
      : args_(args),
        scale_offset_(pad(args.cols)),
        sum16_offset_(scale_offset_ + pad(args.cols / kBlockColumns * sizeof(float))) {}

  Token at(size_t token, size_t column) const {
    const size_t index =
        args_.token_rows != nullptr ? static_cast<size_t>(args_.token_rows[token]) : token;
    const std::byte* row = args_.activations + index * args_.activation_stride;
    return {reinterpret_cast<const int8_t*>(row) + column,
            reinterpret_cast<const int16_t*>(row + sum16_offset_) + column / 16,
            reinterpret_cast<const float*>(row + scale_offset_) + column / kBlockColumns};
  }

 private:
  static constexpr size_t pad(size_t bytes) { return (bytes + 63) / 64 * 64; }

  const MatmulArgs& args_;
  size_t scale_offset_;
  size_t sum16_offset_;
};

/// Family has kBlockColumns, kBlockBytes, and multiply(blocks, columns, chunk), which adds the
/// `columns` ≤ kStretchColumns of a stretch to the sums.
template <class Family>
void multiply_panel(const MatmulArgs& args, size_t first_token, size_t first_row, Chunk& chunk,
                    Prefetch& prefetch) {
  constexpr size_t kStretchBytes = kStretchColumns / Family::kBlockColumns * Family::kBlockBytes;
  // Super-blocks meet their like, smaller blocks activations in blocks of 32, or several of them.
  constexpr size_t kTokenBlock = Family::kBlockColumns == kSuperBlock ? kSuperBlock : kSmallBlock;
  const TokenRows<kTokenBlock> rows(args);
  const std::byte* weights = args.weights + first_row * args.row_bytes;
  Panel<kStretchBytes> panel(weights, args.row_bytes, args.row_count - first_row, prefetch);
  for (size_t t = 0; t < chunk.count; ++t) chunk.acc[t] = _mm512_setzero_ps();
  for (size_t column = 0; column < args.cols; column += kStretchColumns) {
    const size_t left = args.cols - column;
    const size_t columns = left < kStretchColumns ? left : kStretchColumns;
    const size_t blocks = columns / Family::kBlockColumns;
    for (size_t t = 0; t < chunk.count; ++t) chunk.tokens[t] = rows.at(first_token + t, column);
    Family::multiply(panel.stretch(column / Family::kBlockColumns * Family::kBlockBytes,
                                   blocks * Family::kBlockBytes),
                     columns, chunk);
  }
  float* out = args.out + first_token * args.out_stride + first_row;
  for (size_t t = 0; t < chunk.count; ++t)
    _mm512_mask_storeu_ps(out + t * args.out_stride, panel.mask(), chunk.acc[t]);
}

template <class Family>
void multiply_panels(const MatmulArgs& args) {
  Chunk chunk;
  for (size_t first = 0; first < args.token_count; first += chunk.count) {
    const size_t left = args.token_count - first;
    chunk.count = left < kTokenChunk ? left : kTokenChunk;
    Prefetch prefetch(args.weights, args.row_count * args.row_bytes);
    for (size_t row = 0; row < args.row_count; row += kPanelRows)
      multiply_panel<Family>(args, first, row, chunk, prefetch);
  }
}

}  // namespace
}  // namespace sluice::kernels::avx512
