// Routers asked ahead of their turn, on the CPU.
#include "backend/cpu/cpu_backend.h"

namespace sluice {

/// A norm takes less time than waking the pool does, so the caller's thread does them all; the
/// routers then go to the pool together, which pays for the waking once.
void CpuBackend::predict(std::span<const uint32_t> layers, const float* hidden, float* logits) {
  CHECK(layers.size() <= kPredictLayersMax);
  MatmulJob jobs[kPredictLayersMax];
  for (size_t i = 0; i < layers.size(); ++i) {
    const LayerWeights& weights = map_.dense.layers[layers[i]];
    const ActivationFormat format = dtype_info(weights.router.dtype).activation;
    const ActivationRows& rows = scratch_.predict_input.rows(format);
    kernels_.rms_norm(hidden, reinterpret_cast<const float*>(weights.ffn_norm.data),
                      config_.rms_epsilon, config_.hidden_size, scratch_.predict_norm);
    write_activations(kernels_, format, scratch_.predict_norm, 0, config_.hidden_size,
                      config_.hidden_size, rows.row(i));
    jobs[i] = {.weights = weights.router,
               .activations = rows.row(i),
               .activation_stride = rows.stride,
               .token_count = 1,
               .out = logits + i * config_.expert_count,
               .out_stride = weights.router.rows};
  }
  run_matmuls(pool_, kernels_, {jobs, layers.size()});
}

}  // namespace sluice
