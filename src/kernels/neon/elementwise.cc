// What happens to a hidden state between the matrices. Loops go by four floats, or by the 16 lanes
// of sum16; of the last ones, load_some and store_some touch only those that exist. Those that do
// not exist enter a sum as +0, which changes nothing, because no sum here can be −0.
#include "kernels/neon/lanes.h"
#include "kernels/neon/neon.h"

namespace sluice::kernels::neon {
namespace {

float sum_of_squares(const float* x, size_t n) {
  float32x4_t squares[kQuarters] = {};
  for (size_t i = 0; i < n; i += kQuarters * kLanes) {
#pragma GCC unroll 4
    for (size_t quarter = 0; quarter < kQuarters; ++quarter) {
      const size_t at = i + quarter * kLanes;
      const float32x4_t v = load_some(x + at, left(at, n));
      squares[quarter] = vfmaq_f32(squares[quarter], v, v);
    }
  }
  return fold_lanes(squares);
}

}  // namespace

void rms_norm(const float* x, const float* weight, float eps, size_t n, float* out) {
  const float mean = sum_of_squares(x, n) / static_cast<float>(n);
  const float32x4_t scale = vdupq_n_f32(1.0f / __builtin_sqrtf(mean + eps));
  for (size_t i = 0; i < n; i += kLanes) {
    const float32x4_t scaled = vmulq_f32(load_some(x + i, n - i), scale);
    store_some(out + i, vmulq_f32(scaled, load_some(weight + i, n - i)), n - i);
  }
}

void add(const float* x, size_t n, float* y) {
  for (size_t i = 0; i < n; i += kLanes)
    store_some(y + i, vaddq_f32(load_some(y + i, n - i), load_some(x + i, n - i)), n - i);
}

void add_scaled(float a, const float* x, size_t n, float* y) {
  const float32x4_t factor = vdupq_n_f32(a);
  for (size_t i = 0; i < n; i += kLanes) {
    const float32x4_t sum = vfmaq_f32(load_some(y + i, n - i), factor, load_some(x + i, n - i));
    store_some(y + i, sum, n - i);
  }
}

void silu_multiply(const float* gate, const float* up, size_t n, float* out) {
  for (size_t i = 0; i < n; i += kLanes) {
    const float32x4_t silu = silu_lanes(load_some(gate + i, n - i));
    store_some(out + i, vmulq_f32(silu, load_some(up + i, n - i)), n - i);
  }
}

void swiglu_limited(const float* gate, const float* up, float limit, size_t n, float* out) {
  const float32x4_t high = vdupq_n_f32(limit);
  const float32x4_t low = vdupq_n_f32(-limit);
  for (size_t i = 0; i < n; i += kLanes) {
    const float32x4_t silu = silu_lanes(load_some(gate + i, n - i));
    const float32x4_t u = larger(low, smaller(high, load_some(up + i, n - i)));
    store_some(out + i, vmulq_f32(smaller(high, silu), u), n - i);
  }
}

void sigmoid_multiply(const float* gate, const float* up, size_t n, float* out) {
  for (size_t i = 0; i < n; i += kLanes) {
    const float32x4_t sigmoid = sigmoid_lanes(load_some(gate + i, n - i));
    store_some(out + i, vmulq_f32(sigmoid, load_some(up + i, n - i)), n - i);
  }
}

void set_length(float* x, float length, float eps, size_t n) {
  const float found = __builtin_sqrtf(sum_of_squares(x, n));
  const float32x4_t scale = vdupq_n_f32(length / (found > eps ? found : eps));
  for (size_t i = 0; i < n; i += kLanes)
    store_some(x + i, vmulq_f32(load_some(x + i, n - i), scale), n - i);
}

void gelu_multiply(const float* gate, const float* up, size_t n, float* out) {
  using C = GeluConstants;
  const float32x4_t one = vdupq_n_f32(1.0f);
  for (size_t i = 0; i < n; i += kLanes) {
    const float32x4_t x = load_some(gate + i, n - i);
    const float32x4_t slope =
        vfmaq_f32(vdupq_n_f32(C::kLinear), vmulq_f32(x, x), vdupq_n_f32(C::kCubic));
    const float32x4_t w = vmulq_f32(x, slope);
    const float32x4_t gelu = vdivq_f32(x, vaddq_f32(one, exp_lanes(vnegq_f32(w))));
    store_some(out + i, vmulq_f32(gelu, load_some(up + i, n - i)), n - i);
  }
}

void relu_multiply(const float* gate, const float* up, size_t n, float* out) {
  for (size_t i = 0; i < n; i += kLanes) {
    const float32x4_t relu = larger(load_some(gate + i, n - i), vdupq_n_f32(0.0f));
    store_some(out + i, vmulq_f32(relu, load_some(up + i, n - i)), n - i);
  }
}

void swiglu_clamped(const float* gate, const float* up, size_t n, float* out) {
  const float32x4_t one = vdupq_n_f32(1.0f);
  const float32x4_t limit = vdupq_n_f32(kSwigluLimit);
  const float32x4_t alpha = vdupq_n_f32(kSwigluAlpha);
  for (size_t i = 0; i < n; i += kLanes) {
    const float32x4_t g = smaller(load_some(gate + i, n - i), limit);
    const float32x4_t below = smaller(load_some(up + i, n - i), limit);
    const float32x4_t u = larger(below, vdupq_n_f32(-kSwigluLimit));
    const float32x4_t e = exp_lanes(vnegq_f32(vmulq_f32(alpha, g)));
    const float32x4_t swish = vdivq_f32(g, vaddq_f32(one, e));
    store_some(out + i, vmulq_f32(swish, vaddq_f32(u, one)), n - i);
  }
}

void soft_cap(float cap, size_t n, float* x) {
  const float32x4_t limit = vdupq_n_f32(cap);
  for (size_t i = 0; i < n; i += kLanes) {
    const float32x4_t share = vdivq_f32(load_some(x + i, n - i), limit);
    store_some(x + i, vmulq_f32(limit, tanh_lanes(share)), n - i);
  }
}

void softmax(float* x, size_t n) {
  float32x4_t maxima = vdupq_n_f32(-__builtin_inff());
  for (size_t i = 0; i < n; i += kLanes)
    maxima = larger(first_or(load_some(x + i, n - i), n - i, -__builtin_inff()), maxima);
  const float32x4_t max = vdupq_n_f32(vmaxvq_f32(maxima));
  float32x4_t sums[kQuarters] = {};
  for (size_t i = 0; i < n; i += kQuarters * kLanes) {
#pragma GCC unroll 4
    for (size_t quarter = 0; quarter < kQuarters; ++quarter) {
      const size_t at = i + quarter * kLanes;
      const size_t count = left(at, n);
      const float32x4_t e = exp_lanes(vsubq_f32(load_some(x + at, count), max));
      store_some(x + at, e, count);
      sums[quarter] = vaddq_f32(sums[quarter], first_or(e, count, 0.0f));
    }
  }
  const float32x4_t total = vdupq_n_f32(fold_lanes(sums));
  for (size_t i = 0; i < n; i += kLanes)
    store_some(x + i, vdivq_f32(load_some(x + i, n - i), total), n - i);
}

void rope_neox(float* x, const float* cos, const float* sin, size_t pairs) {
  for (size_t i = 0; i < pairs; i += kLanes) {
    const size_t count = pairs - i;
    const float32x4_t a = load_some(x + i, count);
    const float32x4_t b = load_some(x + pairs + i, count);
    const float32x4_t c = load_some(cos + i, count);
    const float32x4_t s = load_some(sin + i, count);
    store_some(x + i, vfmaq_f32(vnegq_f32(vmulq_f32(b, s)), a, c), count);
    store_some(x + pairs + i, vfmaq_f32(vmulq_f32(b, c), a, s), count);
  }
}

void rope_adjacent(float* x, const float* cos, const float* sin, size_t pairs) {
  for (size_t i = 0; i < pairs; i += kLanes) {
    float* low = x + 2 * i;
    float* high = low + kLanes;
    const size_t count = 2 * (pairs - i);
    const size_t high_count = left(kLanes, count);
    const float32x4_t first = load_some(low, count);
    const float32x4_t last = load_some(high, high_count);
    const float32x4_t a = vuzp1q_f32(first, last);
    const float32x4_t b = vuzp2q_f32(first, last);
    const float32x4_t c = load_some(cos + i, pairs - i);
    const float32x4_t s = load_some(sin + i, pairs - i);
    const float32x4_t new_a = vfmaq_f32(vnegq_f32(vmulq_f32(b, s)), a, c);
    const float32x4_t new_b = vfmaq_f32(vmulq_f32(b, c), a, s);
    store_some(low, vzip1q_f32(new_a, new_b), count);
    store_some(high, vzip2q_f32(new_a, new_b), high_count);
  }
}

}  // namespace sluice::kernels::neon
