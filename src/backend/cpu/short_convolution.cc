#include "backend/cpu/short_convolution.h"

#include <algorithm>

namespace sluice {

ShortConvolution::ShortConvolution(const CpuContext& cpu) : cpu_(cpu) {
  for (size_t i = 0; i < cpu.config.layer_count(); ++i)
    if (cpu.config.layers[i].mixer == MixerKind::short_convolution)
      convolved_input_.want(format_of(cpu.map.dense.layers[i].convolution.out));
}

void ShortConvolution::want_input(const LayerWeights& layer, ActivationSet& input) const {
  input.want(format_of(layer.convolution.in));
}

void ShortConvolution::lay_out(Carver& carve) {
  const size_t tokens = cpu_.limits.ubatch_token_max;
  const size_t size = cpu_.config.hidden_size;
  gates_ = carve.floats(tokens * 3 * size);
  rows_ = carve.floats((remembered() + tokens) * size);
  convolved_ = carve.floats(tokens * size);
  convolved_input_.place(carve.take(convolved_input_.bytes(tokens, size)), tokens, size);
}

void ShortConvolution::mix(size_t layer, size_t, size_t token_count, const ActivationSet& input,
                           SequenceState& state, float* out) {
  const ConvolutionWeights& weights = cpu_.map.dense.layers[layer].convolution;
  const size_t size = cpu_.config.hidden_size;
  const size_t before = remembered() * size;
  cpu_.multiply(product_of(weights.in, input, token_count, gates_));
  std::copy_n(state.running(layer), before, rows_);
  cpu_.for_tokens(token_count, [&](size_t token) {
    const float* gate = gates_ + token * 3 * size;
    const float* x = gate + 2 * size;
    float* row = rows_ + before + token * size;
    for (size_t i = 0; i < size; ++i) row[i] = gate[i] * x[i];
  });
  cpu_.for_tokens(token_count, [&](size_t token) {
    const float* gate = gates_ + (token * 3 + 1) * size;
    float* row = convolved_ + token * size;
    cpu_.kernels.convolve(rows_ + token * size, size, floats_of(weights.taps), size,
                          cpu_.config.convolution_width, size, row);
    for (size_t i = 0; i < size; ++i) row[i] = gate[i] * row[i];
    convolved_input_.write(cpu_.kernels, token, row, size);
  });
  std::copy_n(rows_ + token_count * size, before, state.running(layer));
  cpu_.multiply(product_of(weights.out, convolved_input_, token_count, out));
}

}  // namespace sluice
