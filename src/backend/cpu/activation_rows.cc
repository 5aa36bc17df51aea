#include "backend/cpu/activation_rows.h"

#include <cstring>

namespace sluice {
namespace {

constexpr ActivationFormat kFormats[] = {ActivationFormat::f32, ActivationFormat::q8_32,
                                         ActivationFormat::q8_256};

size_t block_of(ActivationFormat format) {
  if (format == ActivationFormat::q8_256) return kSuperBlock;
  return format == ActivationFormat::q8_32 ? kSmallBlock : 1;
}

}  // namespace

void write_activations(const kernels::KernelTable& kernels, ActivationFormat format, const float* x,
                       size_t first, size_t count, size_t cols, std::byte* row) {
  if (format == ActivationFormat::f32) {
    std::memcpy(row + first * sizeof(float), x, count * sizeof(float));
    return;
  }
  const QuantizedRow target = quantized_row(format, cols, row).from(format, first);
  const auto quantize =
      format == ActivationFormat::q8_256 ? kernels.quantize_q8_256 : kernels.quantize_q8_32;
  quantize(x, count, target);
}

size_t ActivationSet::bytes(size_t rows, size_t cols) const {
  size_t total = 0;
  for (const ActivationFormat format : kFormats)
    if (wants(format)) total += rows * activation_layout(format, cols).row_bytes;
  return total;
}

void ActivationSet::place(std::byte* memory, size_t rows, size_t cols) {
  for (const ActivationFormat format : kFormats) {
    if (!wants(format)) continue;
    const size_t stride = activation_layout(format, cols).row_bytes;
    rows_[static_cast<size_t>(format)] = {memory, stride};
    memory += rows * stride;
  }
}

void ActivationSet::write(const kernels::KernelTable& kernels, size_t index, const float* x,
                          size_t cols) const {
  // A format whose blocks do not divide this row is wanted by layers with rows of another length.
  for (const ActivationFormat format : kFormats)
    if (wants(format) && cols % block_of(format) == 0)
      write_activations(kernels, format, x, 0, cols, cols, rows(format).row(index));
}

}  // namespace sluice
