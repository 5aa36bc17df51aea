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

void gelu_multiply(const float* gate, const float* up, size_t n, float* out) {
  for (size_t i = 0; i < n; ++i) out[i] = gelu_f32(gate[i]) * up[i];
}

void relu_multiply(const float* gate, const float* up, size_t n, float* out) {
  for (size_t i = 0; i < n; ++i) out[i] = (gate[i] > 0.0f ? gate[i] : 0.0f) * up[i];
}

void swiglu_clamped(const float* gate, const float* up, size_t n, float* out) {
  for (size_t i = 0; i < n; ++i) {
    const float g = gate[i] < kSwigluLimit ? gate[i] : kSwigluLimit;
    const float below = up[i] < kSwigluLimit ? up[i] : kSwigluLimit;
    const float u = below > -kSwigluLimit ? below : -kSwigluLimit;
    out[i] = g / (1.0f + exp_f32(-(kSwigluAlpha * g))) * (u + 1.0f);
  }
}

void swiglu_limited(const float* gate, const float* up, float limit, size_t n, float* out) {
  for (size_t i = 0; i < n; ++i) {
    const float silu = silu_f32(gate[i]);
    const float g = silu > limit ? limit : silu;
    const float below = up[i] > limit ? limit : up[i];
    const float u = below < -limit ? -limit : below;
    out[i] = g * u;
  }
}

void sigmoid_multiply(const float* gate, const float* up, size_t n, float* out) {
  for (size_t i = 0; i < n; ++i) out[i] = sigmoid_f32(gate[i]) * up[i];
}

void set_length(float* x, float length, float eps, size_t n) {
  Sum16 squares;
  for (size_t i = 0; i < n; ++i) squares.lane(i) = std::fma(x[i], x[i], squares.lane(i));
  const float found = std::sqrt(squares.total());
  const float scale = length / (found > eps ? found : eps);
  for (size_t i = 0; i < n; ++i) x[i] = x[i] * scale;
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

void soft_cap(float cap, size_t n, float* x) {
  for (size_t i = 0; i < n; ++i) x[i] = cap * tanh_f32(x[i] / cap);
}

namespace {

void rotate(float& x, float& y, float cos, float sin) {
  const float a = x;
  const float b = y;
  x = std::fma(a, cos, -(b * sin));
  y = std::fma(a, sin, b * cos);
}

}  // namespace

void rope_neox(float* x, const float* cos, const float* sin, size_t pairs) {
  for (size_t i = 0; i < pairs; ++i) rotate(x[i], x[i + pairs], cos[i], sin[i]);
}

void rope_adjacent(float* x, const float* cos, const float* sin, size_t pairs) {
  for (size_t i = 0; i < pairs; ++i) rotate(x[2 * i], x[2 * i + 1], cos[i], sin[i]);
}

}  // namespace sluice::kernels::ref
