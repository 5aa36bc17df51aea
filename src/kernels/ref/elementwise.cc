// What happens to a hidden state between the matrices.
#include <cmath>
#include <limits>

#include "base/elementary.h"
#include "kernels/ref/ref.h"
#include "kernels/ref/sum16.h"

namespace sluice::kernels::ref {

void rms_norm(const float* x, const float* weight, float eps, size_t n, float* out) {
  Sum16 squares;
  for (size_t i = 0; i < n; ++i) squares.lane(i) = std::fma(x[i], x[i], squares.lane(i));
  const float scale = 1.0f / std::sqrt(squares.total() / static_cast<float>(n) + eps);
  for (size_t i = 0; i < n; ++i) out[i] = (x[i] * scale) * weight[i];
}

void add(const float* x, size_t n, float* y) {
  for (size_t i = 0; i < n; ++i) y[i] = y[i] + x[i];
}

void add_scaled(float a, const float* x, size_t n, float* y) {
  for (size_t i = 0; i < n; ++i) y[i] = std::fma(a, x[i], y[i]);
}

void silu_multiply(const float* gate, const float* up, size_t n, float* out) {
  for (size_t i = 0; i < n; ++i) out[i] = silu_f32(gate[i]) * up[i];
}

void softmax(float* x, size_t n) {
  float max = -std::numeric_limits<float>::infinity();
  for (size_t i = 0; i < n; ++i) max = x[i] > max ? x[i] : max;
  Sum16 sum;
  for (size_t i = 0; i < n; ++i) {
    x[i] = exp_f32(x[i] - max);
    sum.lane(i) += x[i];
  }
  const float total = sum.total();
  for (size_t i = 0; i < n; ++i) x[i] = x[i] / total;
}

void rope_neox(float* x, const float* cos, const float* sin, size_t pairs) {
  for (size_t i = 0; i < pairs; ++i) {
    const float a = x[i];
    const float b = x[i + pairs];
    x[i] = std::fma(a, cos[i], -(b * sin[i]));
    x[i + pairs] = std::fma(a, sin[i], b * cos[i]);
  }
}

}  // namespace sluice::kernels::ref
