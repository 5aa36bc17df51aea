// A weight matrix in memory, as stored in the file: rows of blocks.
#pragma once

#include <cstddef>
#include <cstdint>

#include "quant/dtype.h"

namespace sluice {

/// Row r starts at data + r · row_bytes and holds `cols` values. Owns nothing.
struct Matrix {
  Dtype dtype = Dtype::f32;
  size_t rows = 0;  ///< outputs
  size_t cols = 0;  ///< inputs, GGUF's first dimension
  size_t row_bytes = 0;
  const std::byte* data = nullptr;

  bool present() const { return rows != 0; }
  const std::byte* row(size_t index) const { return data + index * row_bytes; }
  size_t bytes() const { return rows * row_bytes; }

  /// The rows [first, first + count).
  Matrix rows_from(size_t first, size_t count) const {
    return {dtype, count, cols, row_bytes, data == nullptr ? nullptr : row(first)};
  }
};

}  // namespace sluice
