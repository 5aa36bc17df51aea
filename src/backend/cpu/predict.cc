// Routers asked ahead of their turn, on the CPU.
#include "backend/cpu/cpu_backend.h"

namespace sluice {

/// A norm takes less time than waking the pool does, so the caller's thread does them all; the
/// routers then go to the pool together, which pays for the waking once.
void CpuBackend::predict(std::span<const uint32_t> layers, const float* hidden, float* logits) {
  CHECK(layers.size() <= kPredictLayersMax);
  MatmulJob jobs[kPredictLayersMax];
  for (size_t i = 0; i < layers.size(); ++i) {
    const LayerWeights& weights = cpu_.map.dense.layers[layers[i]];
    const ActivationFormat format = format_of(weights.router);
    const ActivationRows& rows = scratch_.predict_input.rows(format);
    normalise_for_router(weights, hidden, scratch_.predict_norm);
    write_activations(cpu_.kernels, format, scratch_.predict_norm, 0, cpu_.config.hidden_size,
                      cpu_.config.hidden_size, rows.row(i));
    jobs[i] = {.weights = weights.router,
               .activations = rows.row(i),
               .activation_stride = rows.stride,
               .token_count = 1,
               .out = logits + i * cpu_.config.expert_count,
               .out_stride = weights.router.rows};
  }
  cpu_.multiply({jobs, layers.size()});
}

}  // namespace sluice
