// Float rows turned into the activation formats that the weights beside them ask for. Different
// matrices of one layer may ask for different formats; a set holds each row once per format in use.
#pragma once

#include <array>

#include "backend/backend.h"
#include "kernels/kernels.h"

namespace sluice {

/// Writes columns [first, first + count) of an activation row of `cols` columns from floats.
/// REQUIRES: first and count are whole blocks of the format.
void write_activations(const kernels::KernelTable& kernels, ActivationFormat format,
                       const float* x, size_t first, size_t count, size_t cols, std::byte* row);

/// The rows of one kind of input, per format; formats that nobody asked for are empty.
class ActivationSet {
 public:
  void want(ActivationFormat format) { wanted_[static_cast<size_t>(format)] = true; }
  bool wants(ActivationFormat format) const { return wanted_[static_cast<size_t>(format)]; }
  /// Bytes for `rows` rows of `cols` columns in all wanted formats.
  size_t bytes(size_t rows, size_t cols) const;
  /// Gives the set its memory. REQUIRES: bytes(rows, cols) bytes, 64-byte aligned.
  void place(std::byte* memory, size_t rows, size_t cols);

  const ActivationRows& rows(ActivationFormat format) const {
    return rows_[static_cast<size_t>(format)];
  }
  /// Writes row `index` in every wanted format from floats.
  void write(const kernels::KernelTable& kernels, size_t index, const float* x, size_t cols) const;

 private:
  std::array<bool, kActivationFormatCount> wanted_{};
  std::array<ActivationRows, kActivationFormatCount> rows_{};
};

}  // namespace sluice
