// Layers that remember by a state: the convolution before it, how much of it is kept, and its step.
#include <cmath>

#include "base/elementary.h"
#include "kernels/ref/ref.h"

namespace sluice::kernels::ref {

void convolve(const float* x, size_t row_stride, const float* taps, size_t tap_stride, size_t width,
              size_t n, float* out) {
  for (size_t i = 0; i < n; ++i) {
    float sum = 0.0f;
    for (size_t k = 0; k < width; ++k)
      sum = std::fma(taps[k * tap_stride + i], x[k * row_stride + i], sum);
    out[i] = sum;
  }
}

void silu(float* x, size_t n) {
  for (size_t i = 0; i < n; ++i) x[i] = silu_f32(x[i]);
}

void softplus_decay(float* x, const float* bias, float factor, size_t n) {
  for (size_t i = 0; i < n; ++i) x[i] = exp_f32(factor * softplus_f32(x[i] + bias[i]));
}

void sigmoid_decay(float* x, const float* bias, float factor, float bound, size_t n) {
  for (size_t i = 0; i < n; ++i) x[i] = exp_f32(bound * sigmoid_f32(factor * (x[i] + bias[i])));
}

namespace {

/// One token passes one column of the state, whose elements are kDeltaTile apart.
float step_column(const DeltaArgs& args, size_t token, float value, float* column) {
  const float* query = args.queries + token * args.query_stride;
  const float* key = args.keys + token * args.query_stride;
  const float* decay = args.decays + token * args.decay_stride;
  float known = 0.0f;
  for (size_t i = 0; i < args.key_dim; ++i)
    known = std::fma(key[i] * decay[i], column[i * kDeltaTile], known);
  const float correction = (value - known) * args.strengths[token * args.strength_stride];
  float out = 0.0f;
  for (size_t i = 0; i < args.key_dim; ++i) {
    float& element = column[i * kDeltaTile];
    element = std::fma(decay[i], element, key[i] * correction);
    out = std::fma(query[i], element, out);
  }
  return out;
}

}  // namespace

void delta_rule(const DeltaArgs& args) {
  for (size_t token = 0; token < args.token_count; ++token)
    for (size_t j = 0; j < args.value_dim; ++j) {
      float* column = args.state + j / kDeltaTile * kDeltaTile * args.key_dim + j % kDeltaTile;
      args.out[token * args.out_stride + j] =
          step_column(args, token, args.values[token * args.value_stride + j], column);
    }
}

}  // namespace sluice::kernels::ref
