#include "model/transposed_weights.h"

#include <vector>

namespace sluice {

Matrix TransposedWeights::shape() const {
  return {.dtype = Dtype::f32,
          .rows = block_count * from->cols,
          .cols = row_count,
          .row_bytes = row_count * sizeof(float),
          .data = nullptr};
}

void transpose(const TransposedWeights& weights, std::byte* memory) {
  const Matrix& from = *weights.from;
  const DtypeInfo& info = dtype_info(from.dtype);
  auto* out = reinterpret_cast<float*>(memory);
  std::vector<float> row(from.cols);
  for (size_t block = 0; block < weights.block_count; ++block)
    for (size_t r = 0; r < weights.row_count; ++r) {
      info.decode(from.row(block * weights.block_step + r), from.cols / info.block_elements,
                  row.data());
      for (size_t c = 0; c < from.cols; ++c)
        out[(block * from.cols + c) * weights.row_count + r] = row[c];
    }
  weights.to->data = memory;
}

}  // namespace sluice
