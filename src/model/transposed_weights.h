// Weights that a file holds the wrong way round: blocks of a matrix's rows, transposed once after
// loading. Their elements are widened to F32, so that no value changes; it costs memory, which is
// why nothing is stored so that need not be. Any thread.
#pragma once

#include "model/matrix.h"

namespace sluice {

struct TransposedWeights {
  const Matrix* from;  ///< holds `block_count` blocks of rows, block_step rows from one to the next
  size_t block_count;
  size_t block_step;
  size_t row_count;  ///< the first so many of a block are wanted
  Matrix* to;        ///< F32 [block · cols of `from`][row_count]

  /// What `to` must look like, but for its data.
  Matrix shape() const;
};

/// Fills the memory that to->data is set to. REQUIRES: from->data is there; shape().bytes() bytes,
/// aligned for floats.
void transpose(const TransposedWeights& weights, std::byte* memory);

}  // namespace sluice
