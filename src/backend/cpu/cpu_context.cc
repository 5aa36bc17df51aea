#include "backend/cpu/cpu_context.h"

namespace sluice {

MatmulJob product_of(const Matrix& weights, const ActivationSet& input, size_t token_count,
                     float* out) {
  const ActivationRows& rows = input.rows(format_of(weights));
  return {.weights = weights,
          .activations = rows.begin,
          .activation_stride = rows.stride,
          .token_count = token_count,
          .out = out,
          .out_stride = weights.rows};
}

void CpuContext::add_bias(const Matrix& bias, size_t token_count, float* rows) const {
  if (!bias.present()) return;
  for_tokens(token_count, [&](size_t token) { add_bias(bias, rows + token * bias.cols); });
}

void CpuContext::normalise_rows(float* rows, size_t count, size_t size, const Matrix& norm) const {
  for (size_t i = 0; i < count; ++i)
    kernels.rms_norm(rows + i * size, floats_of(norm), config.rms_epsilon, size, rows + i * size);
}

}  // namespace sluice
